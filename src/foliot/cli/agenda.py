"""`foliot agenda`: planned runs, in the order they start."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import find_job
from foliot.cli.output import pluralize
from foliot.cli.session import Session, view_command
from foliot.cli.tables import BOLD, DIM, YELLOW, Block, Column, StyledLine, Table, line, stack, styled
from foliot.cli.times import (
    format_milliseconds,
    load_zone,
    local_time,
    local_times,
    local_zone,
    parse_time,
    relative,
)

if TYPE_CHECKING:
    from foliot.wire.reports import AgendaItemOut, AgendaOut


@view_command
def agenda(
    session: Session,
    start: Annotated[str | None, typer.Option("--from", help="Default: now.", metavar="TIME")] = None,
    until: Annotated[
        str | None, typer.Option(help="06:00, 3d, 2026-11-20. Default: a day later.", metavar="TIME")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only this job.", metavar="JOB")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.", metavar="TAG")] = None,
    queue: Annotated[str | None, typer.Option(help="Only jobs of this queue.", metavar="QUEUE")] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone", "--tz", help="Time zone to show times in. Default: this machine's.", metavar="ZONE"
        ),
    ] = None,
) -> None:
    """Show what will run, when, for how long, and what will be skipped or held."""
    zone = timezone or local_zone()
    begin = None if start is None else parse_time(start, session.now, zone, flag="--from")
    end = None if until is None else parse_time(until, begin or session.now, zone, flag="--until")
    job_id = None if job is None else find_job(session.client, job).id
    found = session.client.agenda(start=begin, end=end, job=job_id, tag=tag, queue=queue)
    session.show(found, lambda: agenda_page(found, zone, session.now))


def agenda_page(found: AgendaOut, zone: str, now: datetime) -> Block:
    """Show the items day by day, in one zone."""
    span = " to ".join(local_times((found.start, found.end), zone))
    if not found.items:
        return styled(f"Nothing is planned from {span}.")
    clock = "%H:%M:%S" if any(each.starts_at.second for each in found.items) else "%H:%M"
    columns: list[Column[AgendaItemOut]] = [
        Column("at", lambda item: item.starts_at.astimezone(load_zone(zone)).strftime(clock)),
        Column("in", lambda item: relative(item.starts_at - now), DIM, drop=2),
        Column("job", lambda item: line(item.job_name, (_repeats(item, zone), DIM)), wrap=True),
        Column("takes", _expected_duration, DIM, drop=1),
        Column("note", _notes, wrap=True),
    ]
    blocks: list[Block] = [styled(f"Planned from {span}:", BOLD)]
    blocks += [styled(each, YELLOW) for each in found.notes]
    for day, items in groupby(found.items, lambda item: item.starts_at.astimezone(load_zone(zone)).date()):
        blocks.append(styled(f"{day:%A %d %B %Y}", BOLD))
        blocks.append(Table(columns, list(items), indent=2, show_titles=False))
    if found.truncated:
        end = local_time(found.complete_until, zone)
        blocks.append(styled(f"The list ends at {end}. Use --from to continue there.", YELLOW))
    return stack(*blocks)


def _expected_duration(item: AgendaItemOut) -> str:
    return "" if item.expected_duration_ms is None else f"~{format_milliseconds(item.expected_duration_ms)}"


def _repeats(item: AgendaItemOut, zone: str) -> str:
    """(12 times until 18:00)"""
    if item.count == 1:
        return ""
    until = ""
    if item.last_for is not None:
        first, last = (each.astimezone(load_zone(zone)) for each in (item.starts_at, item.last_for))
        until = f" until {last:%H:%M}" if first.date() == last.date() else f" until {last:%a %H:%M}"
    times = "many times" if item.count is None else pluralize(item.count, "time")
    return f" ({times}{until})"


def _notes(item: AgendaItemOut) -> StyledLine:
    """Show why the item will not run, then its notes."""
    if item.fate == "runs":
        return styled("; ".join(item.notes))
    fate = f"{item.fate} ({item.reason})" if item.reason else item.fate
    return styled("; ".join((fate, *item.notes)), YELLOW)
