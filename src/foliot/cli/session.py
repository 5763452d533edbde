"""What every command that asks a server has in common: where it speaks to, how it prints, what it asks before it destroys."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from foliot.cli.output import escape_control, print_err, print_out
from foliot.clock import SystemClock
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from foliot.sdk import Client
    from foliot.wire.shape import Shape

Params = ParamSpec("Params")
PageBuilder = Callable[[], "RenderableType"]


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


Url = Annotated[
    str | None,
    typer.Option(help="Server to speak to. Default: FOLIOT_API_URL, else this folder's.", metavar="URL"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        help="File with the key, alone on one line. Default: FOLIOT_API_KEY, else admin.key of this folder's server.",
        metavar="FILE",
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option("-w", "--workspace", help="Workspace to work in; for system keys only.", metavar="SLUG"),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option("-o", "--output", help="How to print it. Default: table on a terminal, json elsewhere."),
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and do nothing.")]


class Session:
    """The server and the terminal of one command."""

    def __init__(
        self, url: str | None, key_file: Path | None, workspace: str | None, output: OutputFormat | None
    ) -> None:
        self._url, self._key_file, self._workspace = url, key_file, workspace
        self.requested_format = output  # None where nothing was said
        self.format = output or (OutputFormat.TABLE if sys.stdout.isatty() else OutputFormat.JSON)

    @property
    def now(self) -> datetime:
        return SystemClock().now()

    @cached_property
    def client(self) -> Client:
        from foliot.sdk import Client

        key = None if self._key_file is None else read_key_file(self._key_file)
        return Client(self._url, key, self._workspace)

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()

    def show(self, answer: Shape | Any, look: PageBuilder) -> None:
        """One answer: the API's JSON, or what a person wants to see of it."""
        if self.format is OutputFormat.TABLE:
            self.draw(look())
        else:
            print_out(
                json.dumps(
                    to_json(answer),
                    ensure_ascii=False,
                    indent=2 if self.format is OutputFormat.JSON else None,
                )
            )

    def show_list(self, items: Iterable[Shape], look: PageBuilder, *, next_cursor: str | None = None) -> None:
        """As the API lists things; in jsonl one thing a line."""
        if self.format is OutputFormat.TABLE:
            self.draw(look())
        elif self.format is OutputFormat.JSONL:
            for item in items:
                print_out(json.dumps(to_json(item), ensure_ascii=False))
        else:
            whole = {"items": [to_json(item) for item in items], "next_cursor": next_cursor}
            print_out(json.dumps(whole, ensure_ascii=False, indent=2))

    def show_line(self, item: Shape, look: PageBuilder) -> None:
        """One of many that come one after the other: a line each, whatever the form."""
        if self.format is OutputFormat.TABLE:
            self.draw(look())
        else:
            print_out(json.dumps(to_json(item), ensure_ascii=False))

    def draw(self, drawing: RenderableType) -> None:
        from foliot.cli.tables import drawn, terminal

        print_out(drawn(drawing, *terminal(sys.stdout)))

    def note(self, text: str) -> None:
        """Beside the answer, for people: not where the answer is for programs."""
        if self.format is OutputFormat.TABLE:
            print_err(escape_control(text))


def api_command(command: Callable[Concatenate[Session, Params], None]) -> Callable[..., None]:
    """A command that asks a server: its flags, and these of its own that all such commands share."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in (("url", Url), ("key_file", KeyFile), ("workspace", Workspace), ("output", Output))
    ]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        session = Session(*(given.pop(each.name) for each in shared))
        try:
            command(session, **given)  # type: ignore[call-arg]  # Typer calls by name, with all that it declares
        finally:
            session.close()

    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    called.__signature__ = inspect.Signature([*by_name, *shared])  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in (*by_name, *shared)}
    return called


def confirm(question: str, *, yes: bool) -> None:
    """Before what cannot be undone. Where nobody can answer, `--yes` must have been said."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Invalid(f"{question} Nobody is there to say yes.", hint="Add --yes to do it without asking.")
    if not typer.confirm(escape_control(question), err=True):
        print_err("Nothing was done.")
        raise typer.Exit(1)


def to_json(answer: Any) -> Any:
    """A shape as its JSON; what is JSON already stays."""
    return answer.model_dump(mode="json") if hasattr(answer, "model_dump") else answer


def read_key_file(path: Path) -> str:
    try:
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Invalid(
            f"The key file {path} cannot be read: {why}.", hint="It holds one key, alone on one line."
        ) from None
    if not key:
        raise Invalid(f"The key file {path} is empty.", hint="It holds one key, alone on one line.")
    return key
