"""`foliot freeze on|off|list`: hold many jobs for a while without changing them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.lookup import MIN_PREFIX, find_job
from foliot.cli.output import pluralize
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm, view_command
from foliot.cli.tables import (
    BOLD,
    DIM,
    SHORT_ID,
    YELLOW,
    Block,
    Column,
    Table,
    dry_run_page,
    facts,
    line,
    stack,
    styled,
)
from foliot.cli.times import local_time_relative, local_times, local_zone, parse_time
from foliot.domain.errors import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from foliot.wire.dry_run import FreezeLiftOut
    from foliot.wire.freezes import FreezeOut, FreezePreviewOut, FreezeScope, HeldTimeOut

app = typer.Typer(help="Hold jobs during maintenance, without changing them.", no_args_is_help=True)
_AFTER = {"skip": "skipped", "latest": "the latest of each job runs once", "all": "all run, {rate} a minute"}


class AfterFreeze(StrEnum):
    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class RunsUnderWay(StrEnum):
    DRAIN = "drain"
    STOP = "stop"


@app.command()
@api_command
def on(
    session: Session,
    reason: Annotated[str, typer.Option(help="Why; shown to everyone who asks.", metavar="TEXT")],
    everything: Annotated[bool, typer.Option("--all", help="Every job of the workspace.")] = False,
    job: Annotated[list[str] | None, typer.Option(help="This job; repeatable.", metavar="JOB")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Jobs with this tag; repeatable.", metavar="TAG")
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option(help="Jobs of this queue; repeatable.", metavar="QUEUE")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="When it begins. Default: now.", metavar="TIME")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="When it ends. Default: when it is turned off.", metavar="TIME")
    ] = None,
    after: Annotated[
        AfterFreeze, typer.Option(help="Afterwards: skip the planned times, run the latest once, or run all.")
    ] = AfterFreeze.SKIP,
    per_minute: Annotated[int, typer.Option(min=1, help="The rate for --after all.", metavar="N")] = 60,
    running: Annotated[
        RunsUnderWay, typer.Option(help="Let runs under way finish, or cancel them.")
    ] = RunsUnderWay.DRAIN,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Hold jobs: all, or those that --job, --tag or --queue select. Shows how many before it asks."""
    if everything == bool(job or tag or queue):
        raise Invalid(
            "--all already includes every job." if everything else "No jobs selected.",
            hint="Use --all, or any of --job, --tag and --queue.",
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
    if after is AfterFreeze.ALL:
        body["per_minute"] = per_minute
    if dry_run:
        seen = session.client.freezes.preview(body)
        session.show(seen, lambda: _preview_page(seen, running, zone, session.now))
        return
    if not yes:
        seen = session.client.freezes.preview(body)
        runs = pluralize(seen.running, "run")
        confirm(f"This holds {pluralize(seen.jobs, 'job')}; {runs} under way. Continue?", yes=False)
    made = session.client.freezes.turn_on(body)
    session.show(made, lambda: freeze_page(made, zone, session.now))
    session.note(f"Turn it off with: foliot freeze off {made.id}")


@app.command()
@api_command
def off(
    session: Session,
    freeze: Annotated[
        str | None,
        typer.Argument(
            metavar="FREEZE", help="Freeze id, or its beginning. Not needed if there is only one."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All current and future freezes.")] = False,
    dry_run: DryRun = False,
) -> None:
    """End a freeze now. Its --after decides what happens to the planned times it held."""
    current = list(session.client.freezes.each())
    chosen = current if everything else [_find_freeze(current, freeze)]
    if dry_run:
        tried = [session.client.freezes.dry_run.lift(each.id) for each in chosen]
        session.show_list(
            tried,
            lambda: stack(
                *(_lift_preview(each, freeze.reason) for each, freeze in zip(tried, chosen, strict=True))
            ),
        )
        return
    for each in chosen:
        session.client.freezes.lift(each.id)
    lifted = [session.client.freezes.get(each.id) for each in chosen]
    reasons = ", ".join(f'"{each.reason}"' for each in chosen)
    result = f"Turned off {reasons}." if chosen else "There are no freezes to turn off."
    session.show_list(lifted, lambda: styled(result))


@app.command("list")
@view_command
def list_freezes(
    session: Session,
    ended: Annotated[bool, typer.Option("--ended", help="Include freezes that have ended.")] = False,
    paging: Paging = FIRST_50,
) -> None:
    """List current and future freezes."""
    found = paging.fetch(session.client.freezes.list, ended=ended)
    session.show_list(found, lambda: freeze_table(found.items, local_zone()))


def freeze_table(freezes: Sequence[FreezeOut], zone: str) -> Table[FreezeOut]:
    moments = [at for each in freezes for at in (each.start_at, each.end_at) if at is not None]
    shown = dict(zip(moments, local_times(moments, zone), strict=True))
    columns: list[Column[FreezeOut]] = [
        Column(
            "STATUS",
            lambda each: styled(each.status.replace("_", " "), YELLOW if each.status == "in_force" else DIM),
        ),
        Column("REASON", lambda each: each.reason, wrap=True),
        Column("HOLDS", lambda each: format_scope(each.scope), wrap=True),
        Column("FROM", lambda each: shown[each.start_at], drop=1),
        Column("TO", lambda each: shown[each.end_at] if each.end_at else "until turned off"),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM),
    ]
    return Table(columns, freezes, empty="No freezes: no job is held.")


def freeze_page(freeze: FreezeOut, zone: str, now: datetime) -> Block:
    end = f"until {local_time_relative(freeze.end_at, zone, now)}" if freeze.end_at else "until turned off"
    begin = "" if freeze.status == "in_force" else f" from {local_time_relative(freeze.start_at, zone, now)}"
    return stack(
        line(("Holding", BOLD), f" {format_scope(freeze.scope)}{begin} {end}."),
        facts(
            (
                ("id", str(freeze.id)),
                ("reason", freeze.reason),
                ("planned times", _AFTER[freeze.after].format(rate=freeze.per_minute)),
            )
        ),
    )


def format_scope(scope: FreezeScope) -> str:
    if scope.everything:
        return "everything"
    parts = [pluralize(len(scope.jobs), "job")] if scope.jobs else []
    parts += [f"tag {each}" for each in scope.tags] + [f"queue {each}" for each in scope.queues]
    return ", ".join(parts)


def _preview_page(seen: FreezePreviewOut, running: RunsUnderWay, zone: str, now: datetime) -> Block:
    columns: list[Column[HeldTimeOut]] = [
        Column("JOB", lambda each: each.job_name, wrap=True),
        Column("FIRST HELD", lambda each: local_time_relative(each.planned_for, zone, now)),
    ]
    return stack(
        styled(_preview_sentence(seen, running, zone, now)),
        Table(columns, seen.sample, indent=2) if seen.sample else None,
    )


def _preview_sentence(seen: FreezePreviewOut, running: RunsUnderWay, zone: str, now: datetime) -> str:
    least = "" if seen.is_exact else "at least "
    under_way = "would finish" if running is RunsUnderWay.DRAIN else "would be cancelled"
    return (
        f"Would hold {least}{pluralize(seen.planned_times, 'planned time')} of {pluralize(seen.jobs, 'job')}"
        f" until {local_time_relative(seen.until, zone, now)}. {pluralize(seen.running, 'run')} under way"
        f" {under_way}, {pluralize(seen.ready, 'ready run')} would wait. Nothing was done."
    )


def _lift_preview(tried: FreezeLiftOut, reason: str) -> Block:
    if tried.freeze is None:
        return dry_run_page(f'Would withdraw "{reason}", which has not begun')
    return dry_run_page(
        f'Would turn off "{reason}"',
        f"{pluralize(tried.runs, 'run')} would start,"
        f" and the held planned times of {pluralize(tried.jobs, 'job')} would be decided.",
    )


def _find_freeze(freezes: Sequence[FreezeOut], ref: str | None) -> FreezeOut:
    """Return the freeze with this id; without one, the only freeze."""
    found = [each for each in freezes if ref is None or _matches(str(each.id), ref)]
    if len(found) == 1:
        return found[0]
    if found:
        lines = [f"{each.id}  {each.reason}" for each in found]
        raise Conflict(
            f"There are {len(found)} freezes.",
            hint="\n  ".join(["Name one of these, or use --all:", *lines]),
        )
    raise NotFound(
        "There is no current or future freeze." if ref is None else f'Freeze not found: "{ref}".',
        hint="`foliot freeze list --ended` includes those that have ended.",
    )


def _matches(freeze_id: str, ref: str) -> bool:
    return len(ref) >= MIN_PREFIX and freeze_id.startswith(ref.lower())
