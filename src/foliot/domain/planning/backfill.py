"""Backfill: which planned times of a past stretch have no run yet, and would have had one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from foliot.domain.errors import Conflict, Invalid
from foliot.domain.planning.missed import TICK
from foliot.domain.schedule import Manual, PlannedTime, Timetable, is_chained, next_time
from foliot.domain.schedule.timetable import MOST_TIMES
from foliot.domain.schedule.work_budget import MOST_WORK, WorkBudget, work_budget

MOST_WORK_OF_A_BACKFILL = 5 * MOST_WORK


def times_to_fill(
    timetable: Timetable, start: datetime, end: datetime, has_record: Callable[[PlannedTime], bool]
) -> tuple[PlannedTime, ...]:
    """Return the planned times from `start` up to, not including, `end` that would have run and have no record."""
    if isinstance(timetable.schedule, Manual) or is_chained(timetable.schedule):
        raise Conflict(
            "This schedule names no times in the past.",
            hint="Only cron, fixed-rate interval and once schedules can be backfilled.",
        )
    found: list[PlannedTime] = []
    with work_budget(WorkBudget(MOST_WORK_OF_A_BACKFILL)):
        planned = next_time(timetable, start - TICK)
        for _ in range(MOST_TIMES):
            if planned is None or planned.planned_for >= end:
                return tuple(found)
            if not has_record(planned):
                found.append(planned)
            planned = next_time(timetable, planned.planned_for)
    raise Invalid(
        f"More than {MOST_TIMES:,} planned times lie in this range.",
        pointer="/to",
        hint="Take a shorter one.",
    )
