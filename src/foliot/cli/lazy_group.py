"""A group of commands that imports a command on its first use: `foliot jobs list` does not pay for the other commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


class LazyCommands(Mapping[str, "Command"]):
    """Commands by name, in the order of help. A source is `module:attribute` below foliot.cli."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._built: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._built:
            self._built[name] = _build(name, self._sources[name])
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


class FoliotGroup(TyperGroup):
    """A group whose help shows the whole summary of each command, however narrow the terminal."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        rows = [(name, _summary(command)) for name, command in self.commands.items() if not command.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def lazy_group(sources: Mapping[str, str]) -> type[TyperGroup]:
    """Return the class of a group with these commands, for `typer.Typer(cls=…)`."""

    class Group(FoliotGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = LazyCommands(sources)  # type: ignore[assignment]  # read only: nothing adds commands

    return Group


def _build(name: str, source: str) -> Command:
    module, _, attribute = source.partition(":")
    target = getattr(import_module(f"foliot.cli.{module}"), attribute)
    if isinstance(target, typer.Typer):
        return get_group_from_info(
            TyperInfo(target, name=name, cls=target.info.cls or FoliotGroup),
            pretty_exceptions_short=False,
            suggest_commands=True,
            rich_markup_mode=None,
        )
    return get_command_from_info(
        CommandInfo(name=name, callback=target), pretty_exceptions_short=False, rich_markup_mode=None
    )


def _summary(command: Command) -> str:
    """Return the first paragraph of the help on one line."""
    return " ".join((command.help or "").partition("\n\n")[0].split())
