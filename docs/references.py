"""Writes docs/reference/ from the code: settings, commands, errors, the API and the requirements. `./dev docs` runs it, tests/docs checks it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from docs import api_reference, requirements
from foliot.cli.main import app
from foliot.cli.output import BY_ERROR, MEANINGS, Exit
from foliot.domain.errors import FoliotError
from foliot.settings import FILE_SUFFIX, TABLE, Setting, SettingsError
from foliot.settings.value_types import PATH, TEXT
from foliot.web.errors import REFUSALS, status_of

FOLDER = Path(__file__).resolve().parent / "reference"
MADE = "<!-- Made by `./dev docs` from the code; edit the code instead. -->"


@cache
def pages() -> dict[str, str]:
    return {
        "settings.md": settings(),
        "cli.md": cli(),
        "errors.md": errors(),
        "api.md": api_reference.page(MADE),
        "requirements.md": requirements.page(MADE),
    }


def settings() -> str:
    lines = [
        "# Settings",
        MADE,
        "",
        "Foliot needs none of these to start. A value is taken from the first of: a flag, the environment, `foliot.toml`,",
        "the default. An empty environment variable counts as not set. Unknown names are refused with a suggestion, and all",
        "mistakes are told at once. `foliot settings` shows every value and where it came from.",
        "",
        "`foliot.toml` is read from the current folder, or from where `--config` or `FOLIOT_CONFIG` says. Its keys are the",
        "names below, at the top level (`port = 8700`); relative paths in it start at its own folder.",
        "",
        "Secrets have no flag, because other users can read command lines. Each may come from a file instead: set the name",
        f"with `{FILE_SUFFIX}` added, such as `FOLIOT_API_KEY{FILE_SUFFIX}=/run/secrets/foliot`, to the file's path.",
        "",
        "| environment | `foliot.toml` | flag | value | default |",
        "|---|---|---|---|---|",
        *(setting_row(row) for row in TABLE),
        "",
    ]
    for row in TABLE:
        unit = f" In {row.unit}." if row.unit else ""
        rule = "" if row.type in (TEXT, PATH) else f" It must be {row.type.must_be}."
        lines += [f"## {row.env}", f"{row.about}{unit}{rule}", ""]
    return "\n".join(lines)


def setting_row(row: Setting) -> str:
    toml = f"`{row.name}`" if row.in_toml else "-"
    flag = f"`{row.flag}`" if row.flag and f"{row.flag} " in cli() else "-"
    default = "-" if row.default in (None, ()) else f"`{shown(row.default)}`"
    return f"| [`{row.env}`](#{row.env.lower()}) | {toml} | {flag} | {row.type.word} | {default} |"


def shown(default: object) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ",".join(str(each) for each in default) if isinstance(default, tuple) else str(default)


@cache
def cli() -> str:
    """The help of each command, as the terminal shows it."""
    lines = ["# Commands", MADE, ""]
    for path, text in helps(typer.main.get_command(app), "foliot"):
        lines += [f"## {path}", "```", text.strip(), "```", ""]
    lines += ["## Exit codes", "", "| code | means |", "|---|---|"]
    lines += [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join([*lines, ""])


def helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Name and help of the command and of all below it."""
    context = command.context_class(
        command, parent=parent, info_name=name, terminal_width=100, **command.context_settings
    )
    yield context.command_path, command.get_help(context)
    for child_name, child in getattr(command, "commands", {}).items():
        yield from helps(child, child_name, context)


def errors() -> str:
    lines = [
        "# Errors",
        MADE,
        "",
        "Every error has a stable code. The same sentence reaches the API (RFC 9457 problem+json with `code`, `errors[]` and",
        "`request_id`), the command line (`error[code]: …` on stderr) and the console. A code never changes its meaning.",
        "",
        "| code | what happened | HTTP | exit code |",
        "|---|---|---|---|",
    ]
    for error in tree(FoliotError):
        exit_code = next((code for branch, code in BY_ERROR if issubclass(error, branch)), Exit.FAILURE)
        lines.append(
            f"| `{error.code}` | {first_line(error)} | {status_of(error('')).value} | {exit_code.value} |"
        )
    lines.append(f"| `{SettingsError.code}` | {first_line(SettingsError)} | - | {Exit.USAGE.value} |")
    lines += [
        "",
        "The HTTP edge itself refuses with:",
        "",
        "| code | what happened | HTTP |",
        "|---|---|---|",
    ]
    lines += [f"| `{code}` | {sentence} | {status} |" for status, (code, sentence) in REFUSALS.items()]
    lines.append("| `internal` | Foliot failed; its log holds the reason under the request id. | 500 |")
    return "\n".join([*lines, ""])


def tree(root: type[FoliotError]) -> Iterator[type[FoliotError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def first_line(described: type) -> str:
    return (described.__doc__ or "").strip().splitlines()[0]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
        print(f"docs/reference/{name}")
