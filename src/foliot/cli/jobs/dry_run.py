"""The page of a job's dry run: the schedule in words, the next times, and the effect on upcoming runs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from foliot.cli.jobs.views import planned_time_table, warning_lines
from foliot.cli.output import pluralize
from foliot.cli.tables import BOLD, GREEN, RED, YELLOW, Block, Column, Table, line, stack, styled
from foliot.cli.times import local_time, local_times, relative

if TYPE_CHECKING:
    from foliot.wire.dry_run import DryRunOut

MAX_OF_EACH = 5  # removed, added and moved runs that are listed


def job_dry_run_page(summary: str, tried: DryRunOut, now: datetime, *, is_new: bool = False) -> Block:
    """Show a dry run. `summary` has no full stop."""
    zone = tried.job.schedule.timezone if tried.job is not None else "UTC"
    words = "" if tried.words is None else f": {tried.words}"
    return stack(
        line((summary, BOLD), f"{words}."),
        planned_time_table(tried.items, zone, now) if tried.items else None,
        None if is_new else _difference(tried, zone, now),
        *warning_lines(tried.warnings),
        styled("Nothing was done."),
    )


def _difference(tried: DryRunOut, zone: str, now: datetime) -> Block:
    """List the upcoming runs that would be removed, added or moved."""
    found = tried.difference
    if not (found.added or found.removed or found.moved):
        if not found.unchanged:
            return styled("No upcoming run changes.")
        stay = "stays" if found.unchanged == 1 else "stay"
        return styled(f"The {pluralize(found.unchanged, 'upcoming run')} {stay} as before.")
    removed, added = found.removed[:MAX_OF_EACH], found.added[:MAX_OF_EACH]
    moved = found.moved[:MAX_OF_EACH]
    at = iter(
        local_times([*removed, *added, *(each for move in moved for each in (move.before, move.after))], zone)
    )
    rows = [("-", RED, next(at), relative(each - now)) for each in removed]
    rows += [("+", GREEN, next(at), relative(each - now)) for each in added]
    rows += [("~", YELLOW, next(at), f"-> {next(at)}") for _ in moved]
    columns: list[Column[tuple[str, str, str, str]]] = [
        Column("", lambda row: styled(row[0], row[1])),
        Column("when", lambda row: styled(row[2], row[1])),
        Column("how", lambda row: row[3]),
    ]
    counts = (
        (len(found.removed), "removed"),
        (len(found.added), "added"),
        (len(found.moved), "moved"),
        (found.unchanged, "as before"),
    )
    summary = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    return stack(
        styled(f"Upcoming runs until {local_time(found.until, zone)}: {summary}."),
        Table(columns, rows, indent=2, show_titles=False),
    )
