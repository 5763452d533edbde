"""Find and record long ranges of planned times without visiting each: a year of missed seconds costs as little as a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from foliot.domain.run_plan import MAX_COUNTED, SCHEDULE_EDITED, SkippedRange, SkippedTime
from foliot.domain.schedule import (
    Cron,
    Otherwise,
    PlannedTime,
    SkipReason,
    Timetable,
    count_between,
    latest_to_run_until,
    latest_until,
    planned_after,
    times_between,
)
from foliot.domain.schedule import Gap as ClockGap
from foliot.domain.schedule.window import window_closed_until
from foliot.domain.schedule.zone import naive_utc

TICK = timedelta(microseconds=1)
_FEW = 64  # up to so many times are visited one by one
_STEPS = 8  # single steps back before bisecting


def find_newest_due(
    timetable: Timetable, after: datetime, until: datetime, by: datetime
) -> PlannedTime | None:
    """Return the newest planned time in (after, until] such that it and all before it are due by `by`.

    Only the newest times can be not due yet: spread defers one, a closed window or calendar a whole range. After a few single steps,
    bisection finds the start of that range.
    """
    high = min(until, by)
    for _ in range(_STEPS):
        found = _latest(timetable, after, high)
        ahead = _ahead(timetable, after, found, by)
        if found is None or ahead is None:
            return found
        high = ahead.planned_for - TICK
    low, best = after, None
    while low < high:
        middle = high - (high - low) // 2
        found = _latest(timetable, low, middle)
        ahead = _ahead(timetable, low, found, by)
        if ahead is None:
            low, best = middle, found or best
        else:
            high = ahead.planned_for - TICK
    return best


def find_newest_runnable(
    timetable: Timetable, after: datetime, last: PlannedTime, most: int
) -> list[PlannedTime]:
    """Return the newest `most` planned times in (after, last] that may run, oldest first. Of times due at one instant, the newest counts."""
    chosen: list[PlannedTime] = []
    found: PlannedTime | None = last
    in_a_row = 0
    while found is not None and len(chosen) < most:
        before = found.planned_for - TICK
        in_a_row = 0 if found.skip is None else in_a_row + 1
        if found.skip is None and (not chosen or found.due_at < chosen[-1].due_at):
            chosen.append(found)
            found = _latest(timetable, after, before)
        elif found.skip is None:
            found = find_newest_due(timetable, after, before, chosen[-1].due_at - TICK)
        elif _never_opens(timetable, found):
            break
        elif in_a_row <= _STEPS:
            found = _latest(timetable, after, before)
        else:
            found = latest_to_run_until(timetable, after, before)
    return chosen[::-1]


def record_unchosen(
    timetable: Timetable,
    after: datetime,
    last: PlannedTime,
    chosen: Sequence[PlannedTime],
    reason: SkipReason,
) -> SkippedTime | SkippedRange | None:
    """Make one record of all planned times in (after, last] that were not chosen to run."""
    count = count_between(timetable, after, last.planned_for, MAX_COUNTED + len(chosen))
    if count == len(chosen):
        return None
    taken = {planned.planned_for for planned in chosen}
    if count is not None and count <= _FEW:
        times = times_between(timetable, after, last.planned_for, count)
        left = [planned for planned in times if planned.planned_for not in taken]
        reason = _common_reason(timetable, left, chosen, reason)
        if len(left) == 1:
            return SkippedTime(left[0], reason)
        return SkippedRange(left[0], left[-1], len(left), reason)
    first, final = planned_after(timetable, after), last
    while first is not None and first.planned_for in taken:
        first = planned_after(timetable, first.planned_for)
    while final.planned_for in taken:
        final = _latest(timetable, after, final.planned_for - TICK) or final
    assert first is not None
    left_count = None if count is None else count - len(chosen)
    return SkippedRange(first, final, left_count, _common_reason(timetable, [first, final], chosen, reason))


def record_dropped(
    timetable: Timetable, after: datetime, until: datetime
) -> SkippedTime | SkippedRange | None:
    """Make one record of all planned times in (after, until]: they were deferred past an edit, which drops them."""
    last = _latest(timetable, after, until)
    record = None if last is None else record_unchosen(timetable, after, last, (), SkipReason.OPERATOR)
    return None if record is None else replace(record, note=SCHEDULE_EDITED)


def deferral_reason(timetable: Timetable, planned: PlannedTime) -> SkipReason:
    """Return what deferred this planned time: the job's window or one of its calendars."""
    window = timetable.window
    if window is not None:
        at = naive_utc(planned.planned_for)
        if window_closed_until(window, timetable.schedule.timezone, at) is not None:
            return SkipReason.WINDOW
    return SkipReason.BLACKOUT


def _ahead(
    timetable: Timetable, after: datetime, found: PlannedTime | None, by: datetime
) -> PlannedTime | None:
    """Return the planned time at or just before `found` that is not due by `by`, if there is one.

    Times that will be skipped are due when planned, even within a deferred range; they are passed over.
    """
    if found is not None and found.skip is not None and _mixes(timetable):
        for _ in range(_FEW):
            if found is None or found.skip is None:
                break
            found = _latest(timetable, after, found.planned_for - TICK)
    return found if found is not None and found.due_at > by else None


def _mixes(timetable: Timetable) -> bool:
    """Return whether some planned times may be deferred and others skipped."""
    schedule, rules = timetable.schedule, _closing_rules(timetable)
    skips_gaps = isinstance(schedule, Cron) and schedule.gap is ClockGap.SKIP
    return Otherwise.DEFER in rules and (Otherwise.SKIP in rules or skips_gaps)


def _never_opens(timetable: Timetable, skipped: PlannedTime) -> bool:
    """Return whether nothing opens after this time: where everything defers, that is the only reason to skip it."""
    return skipped.skip is not SkipReason.DST_GAP and Otherwise.SKIP not in _closing_rules(timetable)


def _closing_rules(timetable: Timetable) -> set[Otherwise]:
    rules = {calendar.otherwise for calendar in timetable.calendars}
    return rules if timetable.window is None else {*rules, timetable.window.otherwise}


def _latest(timetable: Timetable, after: datetime, until: datetime) -> PlannedTime | None:
    """Return the newest planned time up to `until`. Window and calendars are applied to that one time only."""
    bare = timetable.bare
    found = latest_until(bare, after, until)
    return found if found is None or bare is timetable else planned_after(timetable, found.planned_for - TICK)


def _common_reason(
    timetable: Timetable, left: Sequence[PlannedTime], chosen: Sequence[PlannedTime], reason: SkipReason
) -> SkipReason:
    """Return the common reason of the record: missed times that would not have run anyway keep their own, if all share it."""
    if reason is not SkipReason.MISFIRE:
        return reason
    running = {planned.due_at for planned in chosen}
    reasons = {
        planned.skip or (deferral_reason(timetable, planned) if planned.due_at in running else reason)
        for planned in left
    }
    return reasons.pop() if len(reasons) == 1 else reason
