"""How the command line speaks: tables and errors. User text is never taken for markup or escapes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from foliot.cli.exit_codes import Exit, exit_of, exit_of_answer
from foliot.domain.errors import FoliotError, Mark, Unavailable
from foliot.settings import SettingsError

if TYPE_CHECKING:
    from foliot.sdk import FoliotApiError

WIDEST_QUOTE = 72


def print_out(text: str = "") -> None:
    try:
        print(text, flush=True)  # noqa: T201  # this is the one place that prints
    except BrokenPipeError:
        raise  # the reader has left: no error to report
    except OSError as error:
        mute_stdout()
        raise Unavailable(
            f"Standard output cannot be written to: {error.strerror or error}.",
            hint="Free some space where it goes, or send it somewhere else.",
        ) from error


def mute_stdout() -> None:
    """Without this Python complains once more, while it closes what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_err(text: str) -> None:
    """For people, beside the output proper."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def report_error(error: FoliotError | SettingsError) -> Exit:
    """Say on stderr what happened, where in the user's text, and what to do next; return the exit code."""
    if isinstance(error, SettingsError):
        for problem in error.problems:
            print_err(format_error(error.code, problem.message, hint=problem.hint))
        return Exit.USAGE
    print_err(format_error(error.code, error.message, hint=error.hint, mark=error.mark))
    return exit_of(error)


def report_api_error(error: FoliotApiError) -> Exit:
    """The same for what a server refused, or what never reached it: field by field where there are several."""
    fields = [each for each in error.errors if each.pointer]
    lone = fields[0] if len(fields) == 1 else None
    message, hint = error.message, error.hint and _in_flags(error.hint)
    if error.status == 401:
        hint = "Give another with --key-file or FOLIOT_API_KEY. Where all are lost, `foliot keys create --admin` makes one."
    if lone is not None and lone.message in {message, message.removesuffix(".")}:
        fields, hint = [], hint or lone.hint
        if lone.pointer.startswith("/config/"):  # of its own fields a type's sentence says no name
            message = f"{lone.pointer}: {message}"
    lines = [format_error(error.code, message, hint=hint)]
    for each in fields:
        lines += [f"  {escape_control(each.pointer)}: {escape_control(each.message)}"]
        lines += [f"    {escape_control(each.hint)}"] if each.hint else []
    if error.status is not None and error.status >= 500 and error.request_id:
        lines += [f"  The server's log has it under request {escape_control(error.request_id)}."]
    print_err("\n".join(lines))
    return exit_of_answer(error.status, error.code)


def _in_flags(hint: str) -> str:
    """The client speaks of its arguments; here they are flags."""
    for argument, flag in (
        ("give key=", "give --key-file"),
        ("url=", "--url"),
        (" A longer timeout= gives it more time.", ""),
    ):
        hint = hint.replace(argument, flag)
    return hint


def format_error(code: str, message: str, *, hint: str | None = None, mark: Mark | None = None) -> str:
    lines = [f"{colorize('31;1', f'error[{code}]', sys.stderr)}: {escape_control(message)}"]
    if mark and mark.text.strip():
        lines += ["  " + line for line in quote(mark).splitlines()]
    if hint:
        lines += ["  " + escape_control(hint)]
    return "\n".join(lines)


def quote(mark: Mark) -> str:
    """The user's text with a caret; of a long one, the part around the mark. One character stays one column."""
    start = min(mark.start, max(0, mark.end - WIDEST_QUOTE), max(0, mark.start - WIDEST_QUOTE // 2))
    if len(mark.text) <= WIDEST_QUOTE:
        start = 0
    shown = "".join(each if each.isprintable() else "?" for each in mark.text[start : start + WIDEST_QUOTE])
    end = min(mark.end - start, len(shown) + 1)
    return Mark(shown, mark.start - start, end).caret()


def escape_control(text: str) -> str:
    """Line by line, with control characters made visible."""
    return "\n".join(
        "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
        for line in text.split("\n")
    )


def pluralize(count: int, noun: str, nouns: str | None = None) -> str:
    """1 run, 43,200 runs."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def format_size(count: int) -> str:
    """Of a file: 812 bytes, 14 KiB, 1.5 MiB."""
    if count < 1024:
        return pluralize(count, "byte")
    return f"{count / 1024:.0f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest value, two blanks between; the heading is bold on a terminal."""
    rows = [[escape_control(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in (headers, *rows)) for column in range(len(headers))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return "\n".join((colorize("1", line(headers), sys.stdout), *(line(row) for row in rows)))


def colorize(code: str, text: str, stream: TextIO) -> str:
    plain = not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"
