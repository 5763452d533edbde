"""One function names the next planned time: `planned_after`. Preview, next run, explain, agenda and firing use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import assert_never

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.calendar import Calendar, calendar_closed_until
from foliot.domain.schedule.cron import wall_times
from foliot.domain.schedule.dst import TICK, Nominal, nominal_after
from foliot.domain.schedule.kinds import ZERO, Cron, Interval, IntervalMode, Manual, Once, Schedule
from foliot.domain.schedule.planned import PlannedTime, SkipReason
from foliot.domain.schedule.wall_times import LAST_YEAR
from foliot.domain.schedule.window import Otherwise, Window, window_closed_until
from foliot.domain.schedule.work_budget import current_budget, work_budget
from foliot.domain.schedule.zone import naive_utc

MOST_TIMES = 10_000  # no answer enumerates more than this
_MOST_STEPS = 800  # through closed spans, when looking for a time that will run
_MOST_GATES = 500  # steps from one closed span into the next, when deferring
Step = Callable[[datetime], PlannedTime | None]  # an instant -> the first planned time after it
_REMEMBERED = 4  # answers of one timetable: where its jobs stood, where they stand, and what comes next
_END_OF_TIME = datetime(LAST_YEAR + 1, 1, 1)


class _Unknown:
    """No answer is cached; None is an answer."""


_UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True)
class Timetable:
    """Everything that decides when a job is planned and due."""

    schedule: Schedule
    seed: str = ""  # the job's id: hashed fields and spread differ by it
    start_at: datetime | None = None
    end_at: datetime | None = None
    window: Window | None = None
    calendars: tuple[Calendar, ...] = ()
    _known: dict[datetime, PlannedTime | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def is_gated(self) -> bool:
        """Whether a window or calendars may defer or skip its planned times."""
        return self.window is not None or bool(self.calendars)

    @property
    def bare(self) -> Timetable:
        """The same planned times without window and calendars, which only decide what becomes of them."""
        return replace(self, window=None, calendars=()) if self.is_gated else self


def planned_after(timetable: Timetable, after: datetime) -> PlannedTime | None:
    """Return the first planned time after `after`, whether it will run or be skipped.

    Jobs that share a timetable ask the same question in a row, so a timetable caches its last answers.
    """
    known = timetable._known  # noqa: SLF001  # no other function looks in there
    found = known.get(after, _UNKNOWN)  # one lookup: another thread may clear it in between
    if not isinstance(found, _Unknown):
        return found
    nominal = _nominal_after(timetable, naive_utc(after))
    found = None if nominal is None else _planned(timetable, nominal)
    if len(known) >= _REMEMBERED:
        known.clear()
    known[after] = found
    return found


def next_time(timetable: Timetable, after: datetime) -> PlannedTime | None:
    """Return the first planned time after `after` that will run. Of times deferred to one instant it is the newest."""
    with work_budget():
        planned = planned_after(timetable, after)
        for _ in range(_MOST_STEPS):
            if planned is None or planned.skip is None:
                return planned if planned is None else newest_due_with(timetable, planned)
            onward = _leap(timetable, planned)
            planned = None if onward is None else planned_after(timetable, onward)
        return None


def preview(timetable: Timetable, after: datetime, n: int) -> tuple[PlannedTime, ...]:
    """Return the next `n` times that will run. With a fixed delay only the first is known."""
    with work_budget():
        times: list[PlannedTime] = []
        most = 1 if is_chained(timetable.schedule) else min(n, MOST_TIMES)
        while len(times) < most and (planned := next_time(timetable, after)) is not None:
            times.append(planned)
            after = planned.planned_for
        return tuple(times)


def times_between(
    timetable: Timetable, start: datetime, end: datetime, limit: int = MOST_TIMES
) -> tuple[PlannedTime, ...]:
    """Return the planned times in (start, end], skipped ones included, at most `limit`."""
    with work_budget():
        times: list[PlannedTime] = []
        most = 1 if is_chained(timetable.schedule) else limit
        while (
            len(times) < most
            and (planned := planned_after(timetable, start)) is not None
            and planned.planned_for <= end
        ):
            times.append(planned)
            start = planned.planned_for
        return tuple(times)


def latest_until(timetable: Timetable, after: datetime, until: datetime) -> PlannedTime | None:
    """Return the newest planned time in (after, until]."""
    return _latest(partial(planned_after, timetable), after, until)


def latest_to_run_until(timetable: Timetable, after: datetime, until: datetime) -> PlannedTime | None:
    """Return the newest planned time in (after, until] that will run. Closed spans are skipped in one step."""
    return _latest(partial(next_time, timetable), after, until)


def _latest(following: Step, after: datetime, until: datetime) -> PlannedTime | None:
    """Find the last time in (after, until] by bisection: a year of minutes costs as little as a day of hours."""
    with work_budget():
        best = following(after)
        if best is None or best.planned_for > until:
            return None
        while (later := following(best.planned_for)) is not None and later.planned_for <= until:
            middle = later.planned_for + (until - later.planned_for) / 2
            beyond = following(middle)
            if beyond is not None and beyond.planned_for <= until:
                best = beyond
            else:
                best, until = later, middle
        return best


def count_between(
    timetable: Timetable, after: datetime, until: datetime, cap: int = MOST_TIMES
) -> int | None:
    """Count the planned times in (after, until]; None above `cap`."""
    schedule = timetable.schedule
    if isinstance(schedule, Interval) and schedule.mode is IntervalMode.FIXED_RATE:
        low, high = (max(after, (timetable.start_at or after) - TICK), min(until, timetable.end_at or until))
        anchor = _anchor(schedule)
        count = max(0, (naive_utc(high) - anchor) // schedule.every) - max(
            0, (naive_utc(low) - anchor) // schedule.every
        )
        return None if count > cap else max(count, 0)
    count = len(times_between(timetable.bare, after, until, cap + 1))
    return None if count > cap else count


def is_chained(schedule: Schedule) -> bool:
    """Return whether the schedule has a fixed delay: the end of each run sets the next time."""
    return isinstance(schedule, Interval) and schedule.mode is IntervalMode.FIXED_DELAY


def _nominal_after(timetable: Timetable, after: datetime) -> Nominal | None:
    if timetable.start_at is not None:
        # A time may be the start itself, but a delay is counted from it.
        start = naive_utc(timetable.start_at)
        after = max(after, start if is_chained(timetable.schedule) else start - TICK)
    nominal = _by_kind(timetable, after)
    if nominal is not None and timetable.end_at is not None and nominal.at > naive_utc(timetable.end_at):
        return None
    return nominal


def _by_kind(timetable: Timetable, after: datetime) -> Nominal | None:
    match timetable.schedule:
        case Cron() as cron:
            return nominal_after(
                wall_times(cron, timetable.seed), cron.timezone, cron.gap, cron.overlap_time, after
            )
        case Interval() as interval:
            return _interval_after(interval, after)
        case Once() as once:
            at = naive_utc(once.at)
            return Nominal(at, at, 0, None) if at > after else None
        case Manual():
            return None
        case _ as never:
            assert_never(never)


def _interval_after(interval: Interval, after: datetime) -> Nominal | None:
    if interval.every < timedelta(seconds=1):
        raise ScheduleInvalid("An interval is at least one second.", pointer="/schedule/every")
    anchor = _anchor(interval)
    if after >= _END_OF_TIME or interval.every > _END_OF_TIME - max(after, anchor):
        return None
    if interval.mode is IntervalMode.FIXED_DELAY:
        at = max(after, anchor) + interval.every
    else:
        at = anchor + (max(0, (after - anchor) // interval.every) + 1) * interval.every
    return Nominal(at, at, 0, None)


def _anchor(interval: Interval) -> datetime:
    if interval.anchor is None:
        raise ScheduleInvalid(
            "This interval has no anchor yet; it gets one when the job is created.",
            pointer="/schedule/anchor",
        )
    return naive_utc(interval.anchor)


def _planned(timetable: Timetable, nominal: Nominal) -> PlannedTime:
    planned_for = nominal.at.replace(tzinfo=UTC)
    if nominal.is_skipped:
        return PlannedTime(
            planned_for, nominal.local, nominal.fold, planned_for, SkipReason.DST_GAP, nominal.dst
        )
    due = nominal.at + _spread(timetable, nominal.at)
    skip = None
    if timetable.is_gated:
        due, skip = _admitted(timetable, due)
    due_at = planned_for if due == nominal.at else due.replace(tzinfo=UTC)
    return PlannedTime(planned_for, nominal.local, nominal.fold, due_at, skip, nominal.dst)


def _spread(timetable: Timetable, at: datetime) -> timedelta:
    """Return the job's stable offset. It never reaches the next planned time, so spread cannot reorder runs."""
    schedule = timetable.schedule
    if not isinstance(schedule, Cron | Interval) or schedule.spread <= ZERO:
        return ZERO
    following = None if is_chained(schedule) else _by_kind(timetable, at)
    space = schedule.spread if following is None else min(schedule.spread, following.at - at)
    return timedelta(seconds=int(_fraction(timetable.seed) * space.total_seconds()))


@lru_cache(maxsize=65_536)
def _fraction(seed: str) -> float:
    return (
        int.from_bytes(hashlib.sha256(f"spread\0{seed}".encode(errors="replace")).digest()[:6], "big") / 2**48
    )


def _admitted(timetable: Timetable, due: datetime) -> tuple[datetime, SkipReason | None]:
    """Return when window and calendars allow the start, or why they never do."""
    at = due
    with work_budget():
        for _ in range(_MOST_GATES):
            closed = _closed(timetable, at)
            if not closed:
                return at, None
            until, reason, _ = max(closed)
            if any(otherwise is Otherwise.SKIP for _, _, otherwise in closed):
                return due, next(why for _, why, otherwise in closed if otherwise is Otherwise.SKIP)
            if until >= _END_OF_TIME:
                return due, reason
            at = until
    return due, reason


def _closed(timetable: Timetable, at: datetime) -> list[tuple[datetime, SkipReason, Otherwise]]:
    """Return what is closed at this instant, and until when."""
    current_budget().spend(1 + len(timetable.calendars))
    closed = []
    if (window := timetable.window) is not None:
        until = window_closed_until(window, timetable.schedule.timezone, at)
        if until is not None:
            closed.append((until, SkipReason.WINDOW, window.otherwise))
    for calendar in timetable.calendars:
        until = calendar_closed_until(calendar, at)
        if until is not None:
            closed.append((until, SkipReason.BLACKOUT, calendar.otherwise))
    return closed


def closed_gates(timetable: Timetable, start: datetime, end: datetime) -> dict[str, datetime]:
    """Name the window and the calendars that are closed on the way from `start` to `end`, each with its last opening."""
    at, gates = naive_utc(start), dict[str, datetime]()
    with work_budget():
        for _ in range(_MOST_GATES):
            if at >= naive_utc(end):
                break
            opens = []
            if (window := timetable.window) is not None:
                opens.append(("its window", window_closed_until(window, timetable.schedule.timezone, at)))
            opens += [(each.title, calendar_closed_until(each, at)) for each in timetable.calendars]
            closed = {name: until for name, until in opens if until is not None and until < _END_OF_TIME}
            if not closed:
                break
            gates |= {name: until.replace(tzinfo=UTC) for name, until in closed.items()}
            at = max(closed.values())
    return gates


def _leap(timetable: Timetable, skipped: PlannedTime) -> datetime | None:
    """Return where to continue after a skipped time: after everything that is closed. None if nothing opens again."""
    if skipped.skip not in (SkipReason.WINDOW, SkipReason.BLACKOUT):
        return skipped.planned_for
    at = due = naive_utc(skipped.due_at)
    for _ in range(_MOST_GATES):
        closed = _closed(timetable, at)
        if not closed:
            ahead = at - (due - naive_utc(skipped.planned_for)) - TICK
            return max(skipped.planned_for, ahead.replace(tzinfo=UTC))
        at = max(until for until, _, _ in closed)
        if at >= _END_OF_TIME:
            return None
    return None


def newest_due_with(timetable: Timetable, planned: PlannedTime) -> PlannedTime:
    """Return the newest planned time that is deferred to the same instant: it runs, and the others give way."""
    if not timetable.is_gated:
        return planned
    newest = latest_until(timetable, planned.planned_for, planned.due_at)
    return (
        newest if newest is not None and newest.skip is None and newest.due_at == planned.due_at else planned
    )
