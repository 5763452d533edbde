"""`foliot limits`: how many runs execute at a time, in the workspace and for each concurrency key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.session import DryRun, Session, api_command, view_command
from foliot.cli.tables import BOLD, YELLOW, Column, StyledLine, Table, line, styled

if TYPE_CHECKING:
    from foliot.wire.fleet import LimitOut

app = typer.Typer(help="Limits on the number of runs at a time.", no_args_is_help=True)
Key = Annotated[
    str | None,
    typer.Option(help="Concurrency key of jobs. Default: the whole workspace.", metavar="KEY"),
]


@app.command("list")
@view_command
def list_limits(session: Session) -> None:
    """List the limit of the workspace, if it has one, and the limits of concurrency keys."""
    found = session.client.limits.list().items
    session.show_list(found, lambda: limit_table(found))


@app.command("set")
@api_command
def set_limit(
    session: Session,
    cap: Annotated[
        int, typer.Argument(min=1, metavar="N", help="Maximum number of runs at a time.", show_default=False)
    ],
    key: Key = None,
    dry_run: DryRun = False,
) -> None:
    """Set a limit. Runs under way continue; further runs wait."""
    verbs = session.client.limits.dry_run if dry_run else session.client.limits
    made = verbs.set(cap, key=key)
    session.show(made, lambda: limit_line(made, "Would set" if dry_run else "Set"))


@app.command()
@api_command
def remove(session: Session, key: Key = None, dry_run: DryRun = False) -> None:
    """Remove a limit. Runs that waited for it start."""
    if dry_run:
        seen = session.client.limits.dry_run.remove(key=key)
        session.show(seen, lambda: limit_line(seen, "Would remove"))
        return
    session.client.limits.remove(key=key)
    session.show({"key": key, "removed": True}, lambda: styled(f"Removed the limit of {_subject(key)}."))


def limit_table(limits: Sequence[LimitOut]) -> Table[LimitOut]:
    columns: list[Column[LimitOut]] = [
        Column("OF", lambda each: _subject(each.key), wrap=True),
        Column("AT MOST", lambda each: f"{each.cap:,}"),
        Column("RUNNING", lambda each: styled(f"{each.in_use:,}", YELLOW if each.in_use >= each.cap else "")),
        Column("WAITING", lambda each: f"{each.waiting:,}"),
    ]
    return Table(columns, limits, empty="No limits: only the workers' capacity counts.")


def limit_line(limit: LimitOut, verb: str) -> StyledLine:
    dry_run = " Nothing was done." if limit.dry_run else ""
    return line(
        (verb, BOLD),
        f" the limit of {_subject(limit.key)}: at most {limit.cap:,} at a time;"
        f" {limit.in_use:,} running, {limit.waiting:,} waiting.{dry_run}",
    )


def _subject(key: str | None) -> str:
    return "the workspace" if key is None else f"key {key}"
