"""Print results and errors, and end with the right exit code. User text is never read as markup or escapes.

`docs/reference/cli.md` is generated from the table of exit codes.

Why: docs/decisions/802-command-line-output.md
"""

from __future__ import annotations

import json
import os
import re
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from foliot.domain.errors import Conflict, Denied, FoliotError, Invalid, Mark, NotFound, Unavailable
from foliot.settings import SettingsError

if TYPE_CHECKING:
    from foliot.sdk import FoliotApiError

MAX_QUOTE = 72


class Exit(IntEnum):
    """Exit codes, the same for every command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    REFUSED = 5
    UNREACHABLE = 6
    NO_KEY = 7
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "ok",
    Exit.FAILURE: "failure",
    Exit.USAGE: "usage",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflict",
    Exit.REFUSED: "refused by policy",
    Exit.UNREACHABLE: "server unreachable",
    Exit.NO_KEY: "no valid key",
    Exit.INTERRUPTED: "interrupted",
}
BY_ERROR: tuple[tuple[type[FoliotError], Exit], ...] = (
    (Invalid, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.CONFLICT),
    (Denied, Exit.REFUSED),
    (Unavailable, Exit.UNREACHABLE),
)
# For errors that the server sent, by HTTP status.
BY_STATUS = {
    400: Exit.USAGE,
    401: Exit.NO_KEY,
    403: Exit.REFUSED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    413: Exit.USAGE,
    415: Exit.USAGE,
    422: Exit.USAGE,
    428: Exit.CONFLICT,
    429: Exit.REFUSED,
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}
# For errors of the client itself, by its error code.
BY_CODE = {
    "no_key": Exit.NO_KEY,
    "unreachable": Exit.UNREACHABLE,
    "untrusted": Exit.UNREACHABLE,
    "setting.invalid": Exit.USAGE,
    "invalid": Exit.USAGE,
}


def exit_code_of(error: FoliotError) -> Exit:
    return next((code for branch, code in BY_ERROR if isinstance(error, branch)), Exit.FAILURE)


def exit_code_of_api_error(status: int | None, code: str) -> Exit:
    found = BY_CODE.get(code) if status is None else BY_STATUS.get(status)
    return found or Exit.FAILURE


# In JSON strings: DEL and C1 controls, zero-width and bidirectional marks, line and paragraph separators.
_STEERING = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def print_out(text: str = "") -> None:
    """Print to stdout."""
    try:
        print(text, flush=True)  # noqa: T201  # the only place that prints results
    except BrokenPipeError:
        raise  # the reader (`| head`) closed the pipe: not an error
    except OSError as error:
        mute_stdout()
        raise Unavailable(
            f"Cannot write to standard output: {error.strerror or error}.",
            hint="Free some disk space, or redirect the output elsewhere.",
        ) from error


def print_err(text: str) -> None:
    """Print a message for people to stderr, apart from the result."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def mute_stdout() -> None:
    """Discard further output: otherwise Python reports the broken pipe again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_error(error: FoliotError | SettingsError) -> Exit:
    """Print what is wrong, where, and what to do; return the exit code."""
    if isinstance(error, SettingsError):
        for problem in error.problems:
            print_err(format_error(error.code, problem.message, hint=problem.hint))
        return Exit.USAGE
    print_err(format_error(error.code, error.message, hint=error.hint, mark=error.mark))
    return exit_code_of(error)


def report_api_error(error: FoliotApiError) -> Exit:
    """Print an error of the server or of the connection; list the fields if several are wrong."""
    fields = [each for each in error.errors if each.pointer]
    only = fields[0] if len(fields) == 1 else None
    message, hint = error.message, error.hint and _name_flags(error.hint)
    if error.status == 401:
        hint = (
            "Pass another key with --key-file or FOLIOT_API_KEY."
            " If all keys are lost, create one with `foliot keys create --admin`."
        )
    if only is not None and only.message in {message, message.removesuffix(".")}:
        fields, hint = [], hint or only.hint
        if only.pointer.startswith("/config/"):  # messages of a handler's config do not name the field
            message = f"{only.pointer}: {message}"
    lines = [format_error(error.code, message, hint=hint)]
    for each in fields:
        lines += [f"  {escape_control(each.pointer)}: {escape_control(each.message)}"]
        lines += [f"    {escape_control(_name_flags(each.hint))}"] if each.hint else []
    if error.status is not None and error.status >= 500 and error.request_id:
        lines += [f"  See the server's log, request {escape_control(error.request_id)}."]
    print_err("\n".join(lines))
    return exit_code_of_api_error(error.status, error.code)


def _name_flags(hint: str) -> str:
    """Replace the client's argument names by the flags of the command line."""
    for argument, flag in (
        ("give key=", "give --key-file"),
        ("url=", "--url"),
        ("force=true", "--force"),
        ("dry_run=true", "--dry-run"),
        ("dry_run", "--dry-run"),
        ("catch_up", "--catch-up"),
        ("detach=true", "--detach"),
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
    """Quote the user's text with a caret below the mark; of a long text, the part around the mark."""
    start = min(mark.start, max(0, mark.end - MAX_QUOTE), max(0, mark.start - MAX_QUOTE // 2))
    if len(mark.text) <= MAX_QUOTE:
        start = 0
    # One character stays one column, so the caret is in the right place.
    shown = "".join(each if each.isprintable() else "?" for each in mark.text[start : start + MAX_QUOTE])
    end = min(mark.end - start, len(shown) + 1)
    return Mark(shown, mark.start - start, end).caret()


def dump_json(value: object, indent: int | None = None) -> str:
    """Write JSON as text that a terminal can show: characters that steer it or turn the reading direction are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escape_control(text: str) -> str:
    """Make control characters visible, except newlines."""
    return "\n".join(
        "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
        for line in text.split("\n")
    )


def pluralize(count: int, noun: str, nouns: str | None = None) -> str:
    """1 run, 43,200 runs."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def format_size(count: int) -> str:
    """812 bytes, 14 KiB, 1.5 MiB."""
    if count < 1024:
        return pluralize(count, "byte")
    return f"{count / 1024:.0f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"


def colorize(code: str, text: str, stream: TextIO) -> str:
    plain = not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"
