"""The parts that all commands with a server share: connection flags, output formats, paging, confirmation."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

import typer

from foliot import wire
from foliot.cli.output import dump_json, escape_control, print_err, print_out
from foliot.clock import SystemClock, pause
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.cli.tables import Block
    from foliot.sdk import Client
    from foliot.wire.shape import Page, Shape

Params = ParamSpec("Params")
Item = TypeVar("Item", bound="Shape")
MAX_PAGE = 200
WATCH_INTERVAL = 2.0  # seconds
CLEAR_SCREEN = "\x1b[2J\x1b[H"
_CURSOR_HELP = "Continue a list from its next_cursor."


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


Url = Annotated[
    str | None,
    typer.Option(
        help="URL of the server. Default: FOLIOT_API_URL, else the server of this folder.", metavar="URL"
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        help="File that holds the API key. Default: FOLIOT_API_KEY, else admin.key of this folder's server.",
        metavar="FILE",
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option("-w", "--workspace", help="Workspace to use; only for system keys.", metavar="SLUG"),
]
Profile = Annotated[
    str | None,
    typer.Option(
        help="Server and key of this section of profiles.toml. Default: FOLIOT_PROFILE.", metavar="NAME"
    ),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option("-o", "--output", help="Output format. Default: FOLIOT_OUTPUT, else table."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Repeat every 2 seconds until Ctrl-C.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]
_SHARED = {"url": Url, "key_file": KeyFile, "workspace": Workspace, "profile": Profile, "output": Output}


@dataclass(frozen=True, slots=True)
class Paging:
    """The flags of a list command. `api_command` turns a parameter of this type into --limit, --cursor and --all."""

    limit: int
    cursor: str | None = None
    everything: bool = False

    def fetch(
        self, get_page: Callable[Params, Page[Item]], *args: Params.args, **filters: Params.kwargs
    ) -> Listed[Item]:
        """Fetch page after page up to the limit. `get_page` is a list of the client: it takes `limit` and `cursor` as well."""
        items: list[Item] = []
        cursor, total = self.cursor, None
        while True:
            size = MAX_PAGE if self.everything else min(MAX_PAGE, self.limit - len(items))
            filters.update(limit=size, cursor=cursor)
            found = get_page(*args, **filters)
            total = getattr(found, "total", None) if total is None else total
            items += found.items
            cursor = found.next_cursor
            if cursor is None or (not self.everything and len(items) >= self.limit):
                return Listed(items, cursor, total)


FIRST_20 = Paging(20)
FIRST_50 = Paging(50)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """Items of a list, the cursor of the next page, and the total if the server counted."""

    items: Sequence[Item]
    next_cursor: str | None = None
    total: int | None = None


class Session:
    """The server and the terminal that one command uses."""

    def __init__(
        self,
        url: str | None,
        key_file: Path | None,
        workspace: str | None,
        profile: str | None,
        output: OutputFormat | None,
    ) -> None:
        wire.builds_on_first_use = True
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # to look for them takes 10 ms
        self._url, self._key_file, self.workspace, self._profile = url, key_file, workspace, profile
        self.requested_format = output
        self.timeout = 30.0  # seconds, for each attempt of a request

    @cached_property
    def format(self) -> OutputFormat:
        if self.requested_format is not None:
            return self.requested_format
        from foliot.settings import load_client

        return OutputFormat(load_client(os.environ, Path.cwd()).output)

    @property
    def now(self) -> datetime:
        return SystemClock().now()

    @property
    def is_table(self) -> bool:
        return self.format is OutputFormat.TABLE

    @cached_property
    def client(self) -> Client:
        gc.disable()  # the imports of a client make much that lives on, and collecting it takes a tenth of a short command
        from foliot.sdk import Client
        from foliot.sdk.connection import resolve_connection

        gc.freeze()
        gc.enable()
        key = None if self._key_file is None else read_key_file(self._key_file)
        connection = resolve_connection(self._url, key, profile=self._profile)
        return Client(
            workspace=self.workspace, timeout=self.timeout, connection=replace(connection, is_brief=True)
        )

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()

    def show(self, answer: Shape | Any, build: Callable[[], Block]) -> None:
        """Print the API's JSON, or the page that `build` returns."""
        if self.is_table:
            self.draw(build())
        elif self.format is OutputFormat.CSV:
            print_csv([to_json(answer)])
        else:
            indent = 2 if self.format is OutputFormat.JSON else None
            print_out(dump_json(to_json(answer), indent=indent))

    def show_dry_run(self, value: object, summary: str) -> None:
        """Show the result of a dry run. `summary` says what would happen, without a full stop."""
        from foliot.cli.tables import styled

        self.show(value, lambda: styled(f"{summary}. Nothing was done."))

    def delete(
        self,
        verbs: Any,
        found: Any,
        question: str,
        preview: Callable[[Any], Block] | None = None,
        *,
        yes: bool,
        dry_run: bool,
        **options: bool,
    ) -> None:
        """Delete what was found, which has an id and a name, by the client's calls of its noun."""
        from foliot.cli.tables import styled

        if dry_run:
            tried = verbs.dry_run.delete(found.id, **options)
            nothing = styled(f"Would delete {found.name}. Nothing was done.")
            self.show(tried, lambda: preview(tried) if preview else nothing)
            return
        confirm(question, yes=yes)
        verbs.delete(found.id, **options)
        self.show({"deleted": str(found.id)}, lambda: styled(f"Deleted {found.name}."))

    def show_list(self, found: Listed[Item] | Sequence[Item], build: Callable[[], Block]) -> None:
        """Print a list as the API sends it; in jsonl one item a line."""
        listed = found if isinstance(found, Listed) else Listed(found)
        if self.is_table:
            self.draw(build())
            if listed.next_cursor:
                self.note("There are more. Use --all or --limit N.")
        elif self.format is OutputFormat.JSONL:
            for item in listed.items:
                print_out(dump_json(to_json(item)))
        elif self.format is OutputFormat.CSV:
            print_csv([to_json(item) for item in listed.items])
        else:
            whole = {"items": [to_json(item) for item in listed.items], "next_cursor": listed.next_cursor}
            print_out(dump_json(whole, indent=2))

    def show_line(self, item: Shape, build: Callable[[], Block]) -> None:
        """Print one item of a stream on one line, in any format."""
        if self.is_table:
            self.draw(build())
        else:
            print_out(dump_json(to_json(item)))

    def draw(self, block: Block) -> None:
        from foliot.cli.tables import render, terminal

        print_out(render(block, *terminal(sys.stdout)))

    def note(self, text: str) -> None:
        """Print a remark for people to stderr. Programs that read JSON get none."""
        if self.is_table:
            print_err(escape_control(text))

    def note_stream(self, text: str) -> None:
        """Print a remark before a stream is opened. What reads streams is loaded first: a Ctrl-C during an import can get lost."""
        from foliot.sdk.http_clients import load_streams

        load_streams()
        self.note(text)


def api_command(command: Callable[Concatenate[Session, Params], None]) -> Callable[..., None]:
    """Turn a function of a session into a command: add the connection flags and expand `Paging`."""
    return _as_command(command, _SHARED)


def view_command(command: Callable[Concatenate[Session, Params], None]) -> Callable[..., None]:
    """Turn a function that only reads into a command that also has --watch."""
    return _as_command(command, _SHARED | {"watch": Watch})


def _as_command(
    command: Callable[Concatenate[Session, Params], None], shared: Mapping[str, Any]
) -> Callable[..., None]:
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    paging = next((each for each in own if each.annotation is Paging), None)

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        is_watched = values.pop("watch", False)
        session = Session(*(values.pop(name) for name in _SHARED))
        if paging is not None:
            flags = (values.pop("limit"), values.pop("cursor"), values.pop("everything"))
            values[paging.name] = Paging(*flags)
        try:
            call = functools.partial(command, session)
            repeat(lambda: call(**values)) if is_watched else call(**values)  # type: ignore[call-arg]  # Typer passes every parameter by name
        finally:
            session.close()

    declared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for parameter in own
        for name, annotation, default in _declarations(parameter)
    ]
    declared += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if annotation is Watch else None,
            annotation=annotation,
        )
        for name, annotation in shared.items()
    ]
    wrapper.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in declared}
    return wrapper


def repeat(call: Callable[[], None]) -> NoReturn:
    """Call again and again. On a terminal each output replaces the last; elsewhere an empty line divides them."""
    is_terminal = sys.stdout.isatty()
    while True:
        if is_terminal:
            print_out(CLEAR_SCREEN)
        call()
        if not is_terminal:
            print_out()
        pause(WATCH_INTERVAL)


def _declarations(parameter: inspect.Parameter) -> list[tuple[str, Any, Any]]:
    """Return (name, annotation, default) of each flag that the parameter stands for."""
    if parameter.annotation is not Paging:
        return [(parameter.name, parameter.annotation, parameter.default)]
    limit = typer.Option("-n", "--limit", min=1, max=100_000, help="Show at most N.", metavar="N")
    cursor = typer.Option(help=_CURSOR_HELP, metavar="CURSOR")
    everything = typer.Option("--all", help="Show all, however many.")
    return [
        ("limit", Annotated[int, limit], parameter.default.limit),
        ("cursor", Annotated[str | None, cursor], None),
        ("everything", Annotated[bool, everything], False),
    ]


def confirm(question: str, *, yes: bool) -> None:
    """Ask before a change that cannot be undone. Without a terminal, --yes is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Invalid(
            f"{question} This needs confirmation, and there is no terminal to ask on.",
            hint="Add --yes to confirm.",
        )
    if not typer.confirm(escape_control(question), err=True):
        print_err("Nothing was done.")
        raise typer.Exit(1)


def print_csv(items: Sequence[Any]) -> None:
    """Print one row for each item, with the fields of the API as columns. Nested values are JSON."""
    import csv
    import io

    rows = [item if isinstance(item, dict) else {"value": item} for item in items]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if names:
        writer.writerow(names)
    writer.writerows([_csv_value(row.get(name)) for name in names] for row in rows)
    if rows:
        print_out(text.getvalue().rstrip("\n"))


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return dump_json(value)
    return "" if value is None else value


def to_json(answer: Any) -> Any:
    """Return a wire shape as JSON values; other values unchanged."""
    return answer.model_dump(mode="json") if hasattr(answer, "model_dump") else answer


def read_key_file(path: Path) -> str:
    hint = "The file must hold one key on one line."
    try:
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Invalid(f"Cannot read the key file {path}: {why}.", hint=hint) from None
    if not key:
        raise Invalid(f"The key file {path} is empty.", hint=hint)
    return key
