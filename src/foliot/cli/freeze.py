"""`foliot freeze on|off|list`: hold many jobs for a while without touching any of them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from foliot.cli.lookup import find_job
from foliot.cli.output import pluralize
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.times import local_zone, parse_time
from foliot.domain.errors import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from foliot.wire.freezes import FreezeOut

app = typer.Typer(help="Hold jobs for maintenance. No job is changed by it.", no_args_is_help=True)
Several = list[str] | None


class After(StrEnum):
    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class Running(StrEnum):
    DRAIN = "drain"
    STOP = "stop"


@app.command()
@api_command
def on(
    session: Session,
    reason: Annotated[str, typer.Option(help="Why; everybody who wonders will read it.", metavar="TEXT")],
    everything: Annotated[bool, typer.Option("--all", help="Every job of the workspace.")] = False,
    job: Annotated[Several, typer.Option(help="This job.", metavar="JOB")] = None,
    tag: Annotated[Several, typer.Option(help="Jobs with this tag.", metavar="TAG")] = None,
    queue: Annotated[Several, typer.Option(help="Jobs of this queue.", metavar="QUEUE")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="When it begins. Default: now.", metavar="TIME")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="When it ends. Default: when somebody turns it off.", metavar="TIME")
    ] = None,
    after: Annotated[
        After, typer.Option(help="Planned times within it: skip them, run the latest once, or run all.")
    ] = After.SKIP,
    per_minute: Annotated[int, typer.Option(min=1, help="The rate for --after all.", metavar="N")] = 60,
    running: Annotated[
        Running, typer.Option(help="What runs now: let it finish, or cancel it.")
    ] = Running.DRAIN,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Hold jobs: all, or those named by --job, --tag or --queue. Shows what it would hold before it does."""
    from foliot.cli.holding_rendering import freeze_line, would_hold

    if everything == bool(job or tag or queue):
        raise Invalid(
            "What shall be held?" if not everything else "--all holds everything already.",
            hint="Give --all, or some of --job, --tag and --queue.",
        )
    zone = local_zone()
    body: dict[str, Any] = {
        "scope": {"everything": True}
        if everything
        else {
            "jobs": [find_job(session.client, each).id for each in job or ()],
            "tags": tag or [],
            "queues": queue or [],
        },
        "reason": reason,
        "after": after.value,
        "running": running.value,
    }
    if start is not None:
        body["start_at"] = parse_time(start, session.now, zone, flag="--from")
    if until is not None:
        body["end_at"] = parse_time(until, session.now, zone, flag="--until")
    if after is After.ALL:
        body["per_minute"] = per_minute
    if dry_run:
        seen = session.client.freezes.preview(body)
        session.show(seen, lambda: would_hold(seen, running.value, zone, session.now))
        return
    if not yes:
        seen = session.client.freezes.preview(body)
        confirm(
            f"This holds {pluralize(seen.jobs, 'job')}, with {pluralize(seen.running, 'run')} under way. Go on?",
            yes=False,
        )
    made = session.client.freezes.turn_on(body)
    session.show(made, lambda: freeze_line(made, zone, session.now))
    session.note(f"Turn it off: foliot freeze off {made.id}")


@app.command()
@api_command
def off(
    session: Session,
    freeze: Annotated[
        str | None,
        typer.Argument(
            metavar="FREEZE", help="Its id, or the beginning of it. Not needed where there is only one."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are in force or to come.")] = False,
    dry_run: DryRun = False,
) -> None:
    """End a freeze now. What it held goes on as its --after said."""
    from foliot.cli.dry_rendering import tried_lift
    from foliot.cli.tables import cell, stacked

    there = list(session.client.freezes.each())
    chosen = there if everything else [_the_one(there, freeze)]
    if dry_run:
        tried = [session.client.freezes.dry_run.lift(each.id) for each in chosen]
        session.show_list(
            tried,
            lambda: stacked(*(tried_lift(*each) for each in zip(tried, _reasons(chosen), strict=True))),
        )
        return
    for each in chosen:
        session.client.freezes.lift(each.id)
    lifted = [session.client.freezes.get(each.id) for each in chosen]
    said = ", ".join(f'"{each.reason}"' for each in chosen) or "nothing: none is in force"
    session.show_list(lifted, lambda: cell(f"Turned off {said}."))


@app.command("list")
@api_command
def list_freezes(
    session: Session,
    ended: Annotated[bool, typer.Option("--ended", help="Also those that are over.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """Freezes in force and to come."""
    from foliot.cli.holding_rendering import freeze_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.freezes.list(ended=ended, limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: freeze_list(found, local_zone(), session.now), next_cursor=next_cursor)


def _reasons(freezes: list[FreezeOut]) -> list[str]:
    return [each.reason for each in freezes]


def _the_one(there: list[FreezeOut], called: str | None) -> FreezeOut:
    found = [each for each in there if called is None or _is_called(each.id, called)]
    if len(found) == 1:
        return found[0]
    if found:
        lines = [f"{each.id}  {each.reason}" for each in found]
        raise Conflict("Which one?", hint="\n  ".join(["There are:", *lines, "Name one, or give --all."]))
    raise NotFound(
        "No freeze is in force or to come." if called is None else f'There is no freeze "{called}".',
        hint="`foliot freeze list --ended` shows those that are over.",
    )


def _is_called(freeze_id: UUID, called: str) -> bool:
    return len(called) >= 4 and str(freeze_id).startswith(called.lower())
