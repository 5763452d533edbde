"""May a run start now? Asked when it is made, and again whenever it becomes startable: promoted, retried, thawed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from foliot.domain.gaps import TICK
from foliot.domain.job import Job
from foliot.domain.schedule import Once, SkipReason, Timetable, planned_after
from foliot.domain.schedule.window import window_closes_at
from foliot.domain.schedule.zone import naive_utc


@dataclass(frozen=True, slots=True)
class MayStart:
    """From `at` on, and no later than `until` (the window's end)."""

    at: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class MayNot:
    reason: SkipReason


def why_expired(job: Job, expires_at: datetime) -> SkipReason:
    """Whether it was the window or the start deadline that ended at `expires_at`."""
    window, zone = job.timetable.window, job.timetable.schedule.timezone
    if window is None:
        return SkipReason.DEADLINE
    if job.limits.start_deadline is None:
        return SkipReason.WINDOW
    at = naive_utc(expires_at)
    return SkipReason.WINDOW if window_closes_at(window, zone, at) == at else SkipReason.DEADLINE


def may_start(timetable: Timetable, now: datetime) -> MayStart | MayNot:
    """When window and calendars let a run begin that could begin now."""
    window, zone = timetable.window, timetable.schedule.timezone
    if window is None and not timetable.calendars:
        return MayStart(now)
    asked = replace(timetable, schedule=Once(now, zone), start_at=None, end_at=None)
    answer = planned_after(asked, now - TICK)
    if answer is None or answer.skip is not None:
        return MayNot((answer and answer.skip) or SkipReason.BLACKOUT)
    closes = None if window is None else window_closes_at(window, zone, naive_utc(answer.due_at))
    return MayStart(answer.due_at, None if closes is None else closes.replace(tzinfo=UTC))
