"""May a run start now? Asked when it is made, and again whenever it becomes startable: promoted, retried, thawed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from foliot.domain.job import Job
from foliot.domain.planning.missed import TICK
from foliot.domain.run import Trigger
from foliot.domain.schedule import Once, Otherwise, SkipReason, Timetable, planned_after
from foliot.domain.schedule.calendar import calendar_closes_at
from foliot.domain.schedule.window import window_closes_at
from foliot.domain.schedule.zone import naive_utc


@dataclass(frozen=True, slots=True)
class MayStart:
    """From `at` on, and no later than `until` (the window's end).

    `closes` is when a calendar closes after `at`: a run that no worker has by then is put off, or skipped where the calendar says so.
    """

    at: datetime
    until: datetime | None = None
    closes: datetime | None = None

    @property
    def ready_until(self) -> datetime | None:
        """Until when a run that is ready may be taken."""
        return min((each for each in (self.until, self.closes) if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class MayNot:
    reason: SkipReason


def why_expired(job: Job, expires_at: datetime) -> SkipReason:
    """Whether it was the window, a calendar or the start deadline that ended at `expires_at`."""
    window, zone = job.timetable.window, job.timetable.schedule.timezone
    at = naive_utc(expires_at)
    if window is not None and window_closes_at(window, zone, at) == at:
        return SkipReason.WINDOW
    if any(calendar_closes_at(each, at - TICK) == at for each in job.timetable.calendars):
        return SkipReason.BLACKOUT
    if job.limits.start_deadline is not None:
        return SkipReason.DEADLINE
    if window is not None:
        return SkipReason.WINDOW
    return SkipReason.BLACKOUT if job.timetable.calendars else SkipReason.DEADLINE


def without_closing(job: Job, expires_at: datetime | None) -> datetime | None:
    """The same, unless it was a calendar's closing: that binds a run that is ready, and no other."""
    if expires_at is None or not job.timetable.calendars:
        return expires_at
    return None if why_expired(job, expires_at) is SkipReason.BLACKOUT else expires_at


def may_start(timetable: Timetable, now: datetime) -> MayStart | MayNot:
    """When window and calendars let a run begin that could begin now."""
    window, zone = timetable.window, timetable.schedule.timezone
    if window is None and not timetable.calendars:
        return MayStart(now)
    asked = replace(timetable, schedule=Once(now, zone), start_at=None, end_at=None)
    answer = planned_after(asked, now - TICK)
    if answer is None or answer.skip is not None:
        return MayNot((answer and answer.skip) or SkipReason.BLACKOUT)
    at = naive_utc(answer.due_at)
    ends = None if window is None else window_closes_at(window, zone, at)
    closings = (calendar_closes_at(each, at) for each in timetable.calendars)
    closes = min((each for each in closings if each is not None), default=None)
    return MayStart(
        answer.due_at,
        None if ends is None else ends.replace(tzinfo=UTC),
        None if closes is None else closes.replace(tzinfo=UTC),
    )


def may_start_by(trigger: Trigger, timetable: Timetable, now: datetime) -> MayStart | MayNot:
    """The same, by what made the run: what a person asked for is bound by no window; a backfill waits for one to open."""
    if trigger in (Trigger.MANUAL, Trigger.RETRY, Trigger.WEBHOOK):
        return MayStart(now)
    if trigger is Trigger.BACKFILL:
        return may_start(_patient(timetable), now)
    return may_start(timetable, now)


def _patient(timetable: Timetable) -> Timetable:
    window = timetable.window
    return replace(
        timetable,
        window=None if window is None else replace(window, otherwise=Otherwise.DEFER),
        calendars=tuple(replace(each, otherwise=Otherwise.DEFER) for each in timetable.calendars),
    )
