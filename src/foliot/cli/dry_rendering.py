"""How dry runs of everything but a job's definition look: what would be, and that nothing was done."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.run_rendering import called
from foliot.cli.tables import STRONG, cell, columns, stacked
from foliot.cli.times import local_time_relative, local_zone
from foliot.wire.dry_run import (
    CalendarDryRunOut,
    FreezeLiftOut,
    KeyDryRunOut,
    MemberDryRunOut,
    RunDryRunOut,
    WorkspaceDryRunOut,
)

SHOWN = 10


def would(what: str, *told: str | None) -> RenderableType:
    """`what` without a full stop; then each sentence on a line of its own."""
    lines = [cell(each) for each in told if each]
    return stacked(Text.assemble((cell(what).plain, STRONG), "."), *lines, Text("Nothing was done."))


def tried_run(tried: RunDryRunOut, what: str) -> RenderableType:
    return would(f"{what} {called(tried.run)}", tried.sentence)


def tried_calendar(tried: CalendarDryRunOut, what: str, now: datetime) -> RenderableType:
    zone = local_zone()
    rows = [
        (cell(each.job_name), _moment(each.before, zone, now), _moment(each.after, zone, now))
        for each in tried.moved[:SHOWN]
    ]
    more = len(tried.moved) - len(rows)
    least = "" if tried.complete else "at least "
    return stacked(
        Text.assemble((cell(what).plain, STRONG), "."),
        Text(
            f"{pluralize(tried.jobs, 'job')} use{'s' if tried.jobs == 1 else ''} it;"
            f" of {least}{len(tried.moved):,} the next run would move."
        )
        if tried.jobs
        else Text("No job uses it."),
        columns(("JOB", "RUNS NEXT", "WOULD RUN NEXT"), rows, wraps=("JOB",), indent=2) if rows else None,
        Text(f"  and {more:,} more") if more else None,
        Text("Nothing was done."),
    )


def tried_lift(tried: FreezeLiftOut, reason: str) -> RenderableType:
    if tried.freeze is None:
        return would(f'Would take back "{reason}", which has not begun')
    return would(
        f'Would turn off "{reason}"',
        f"{pluralize(tried.runs, 'run')} would go on, and held planned times of {pluralize(tried.jobs, 'job')} be decided.",
    )


def tried_key(tried: KeyDryRunOut, what: str) -> RenderableType:
    key = tried.key
    may = ", ".join(key.scopes) or key.role or "nothing but to work"
    goes_on = f"{pluralize(tried.made_valid, 'key')} that it made would go on: --made-too ends them."
    return would(
        f"{what} {key.name} for {key.principal.name}: {may}",
        f"{pluralize(tried.made_revoked, 'key')} that it made would end with it."
        if tried.made_revoked
        else None,
        goes_on if tried.made_valid else None,
    )


def tried_member(tried: MemberDryRunOut, what: str) -> RenderableType:
    member = tried.member
    return would(
        f"{what} {member.name}: {member.kind}, {member.role}{'' if member.active else ', removed'}",
        f"{pluralize(tried.revoked_keys, 'key')} would end." if tried.revoked_keys else None,
    )


def tried_workspace(tried: WorkspaceDryRunOut, what: str, *, archives: bool = False) -> RenderableType:
    found = tried.workspace
    goes = (
        f"{pluralize(tried.jobs, 'job')} would be archived, {pluralize(tried.keys, 'key')} end,"
        f" {pluralize(tried.runs, 'run')} be cancelled."
    )
    return would(f"{what} {found.slug}: {found.name}, {found.default_timezone}", goes if archives else None)


def _moment(at: datetime | None, zone: str, now: datetime) -> Text:
    return cell("never" if at is None else local_time_relative(at, zone, now))
