"""The expected records of one job, derived from the commands it got: each planned time of its timetable is recorded once.

The brute-force oracle checks the planned times themselves; here only the records are checked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from foliot.domain.admission import LAST_START, Opening, find_opening
from foliot.domain.planning.missed import TICK
from foliot.domain.run_plan import MAX_COUNTED
from foliot.domain.schedule import Interval, PlannedTime, Timetable, is_chained, planned_after, times_between
from tools.simulation.command_log import JobHistory, SchedulePeriod

MOST = 1_000_000
STOPPED = frozenset({"paused", "failed", "completed", "expired", "disabled"})


@dataclass(frozen=True, slots=True)
class TimerState:
    """The state of the job's timer."""

    status: str
    status_at: datetime
    cursor_at: datetime
    due_at: datetime | None
    ending: str | None
    runs_created: int
    live: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run record that the schedule made."""

    schedule_rev: int
    planned_for: datetime
    planned_key: datetime
    fold: int
    planned_until: datetime | None
    count: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def find_violations(
    history: JobHistory,
    timer: TimerState,
    records: Sequence[RunRecord],
    ends: AbstractSet[datetime | None],
    ticks: Sequence[datetime],
) -> Iterator[str]:
    """Yield every violation in the history of this job, as a message that begins with the broken invariant."""
    for index, period in enumerate(history.periods):
        mine = [record for record in records if record.schedule_rev == period.schedule_rev]
        is_last = index == len(history.periods) - 1
        until = timer.cursor_at if is_last else history.periods[index + 1].since
        if is_chained(period.timetable.schedule):
            yield from _chained(history, period, mine, ends)
        else:
            yield from _complete(
                period, mine, until, is_last=is_last, is_counted=history.spec.max_runs is not None
            )
        if is_last:
            yield from _timer(history, period, timer, ticks)
    known = {period.schedule_rev for period in history.periods}
    for record in records:
        if record.schedule_rev not in known:
            yield f"I1: a record of schedule revision {record.schedule_rev}, which nobody made"


def may_begin(history: JobHistory, available_at: datetime, now: datetime) -> bool:
    """Return whether its window was open when the run became available, and still is. An edit may have come between."""
    return any(
        _is_open(period.timetable, available_at) and _is_open(period.timetable, now)
        for period in history.periods[-2:]
    )


def _is_open(timetable: Timetable, at: datetime) -> bool:
    """Return whether a run may start then. One that is due at the end of its window has a moment more."""
    if _opens_at(timetable, at):
        return True
    before = at - LAST_START + TICK
    return _opens_at(replace(timetable, window=None), at) and _opens_at(timetable, before)


def _opens_at(timetable: Timetable, at: datetime) -> bool:
    allowed = find_opening(timetable, at)
    return isinstance(allowed, Opening) and allowed.at == at


def _complete(
    period: SchedulePeriod, records: Sequence[RunRecord], until: datetime, *, is_last: bool, is_counted: bool
) -> Iterator[str]:
    """Check that every planned time is in exactly one record: its own, or a gap's."""
    expected = times_between(period.timetable, period.since, until, MOST)
    by_instant = {planned.planned_for: planned for planned in expected}
    instants = [planned.planned_for for planned in expected]
    open_times = set(instants)
    for record in records:
        planned = by_instant.get(record.planned_for)
        if planned is None:
            yield f"I1: a record for {record.planned_for}, which was not planned"
        elif (planned.local, planned.fold) != (record.planned_key, record.fold):
            yield f"I1: {record.planned_for} is recorded as {record.planned_key} fold {record.fold}, not {planned.local} fold {planned.fold}"
        elif record.planned_until is None:
            yield from _single(record, planned, open_times, None if is_last else until)
    for record in records:
        if record.planned_until is not None:
            inside = instants[bisect_left(instants, record.planned_for) :]
            stands_for = {at for at in inside if at <= record.planned_until} & open_times
            open_times -= stands_for
            if record.count != (len(stands_for) if len(stands_for) <= MAX_COUNTED else None):
                yield f"I1: the gap from {record.planned_for} to {record.planned_until} counts {record.count}, not {len(stands_for)}"
    if not is_last and is_counted:  # a job that has had all its runs plans no more
        open_times = set()
    for missing in sorted(open_times)[:1]:
        yield f"I1: {missing} was planned and has no record ({len(open_times)} such)"


def _single(
    record: RunRecord, planned: PlannedTime, open_times: set[datetime], edited_at: datetime | None
) -> Iterator[str]:
    if planned.planned_for not in open_times:
        yield f"I2: {planned.planned_for} has two records"
    open_times.discard(planned.planned_for)
    early = [at for at in (record.created_at, record.started_at) if at is not None and at < planned.due_at]
    is_dropped = record.created_at == edited_at and record.started_at is None  # put off, then edited away
    if early and not is_dropped:
        yield f"I3: {planned.planned_for} was due at {planned.due_at} and acted on at {early[0]}"


def _chained(
    history: JobHistory,
    period: SchedulePeriod,
    records: Sequence[RunRecord],
    ends: AbstractSet[datetime | None],
) -> Iterator[str]:
    """fixed_delay: each planned time lies `every` after the end of a run, or after creation, edit or resume."""
    schedule, start_at = period.timetable.schedule, period.timetable.start_at
    assert isinstance(schedule, Interval)
    starts = {period.since, *history.resumed, *ends}
    if start_at is not None:
        starts.add(start_at)
    before: RunRecord | None = None
    for record in records:
        if record.planned_for - schedule.every not in starts:
            yield f"I1: {record.planned_for} follows neither the end of a run nor a start"
        if before is not None and before.finished_at is not None and record.planned_for < before.finished_at:
            yield f"I5: {record.planned_for} was planned before the run of {before.planned_for} had ended"
        if record.created_at < record.planned_for:
            yield f"I3: {record.planned_for} was recorded at {record.created_at}"
        before = record


def _timer(
    history: JobHistory, period: SchedulePeriod, timer: TimerState, ticks: Sequence[datetime]
) -> Iterator[str]:
    """Check that an active job's timer is at the first unrecorded planned time, and that no due time is left."""
    upcoming = planned_after(period.timetable, timer.cursor_at)
    if timer.status == "archived":  # perhaps long after it was stopped
        return
    if timer.status in STOPPED:
        resumed_at = max(history.resumed, default=period.since)
        stopped_at = min([timer.status_at, *(at for at in history.paused if at > resumed_at)])
        before = bisect_left(ticks, stopped_at)
        seen = ticks[before - 1] if before else None
        is_full = history.spec.max_runs is not None and timer.runs_created >= history.spec.max_runs
        is_chain = is_chained(period.timetable.schedule)
        if upcoming is None or history.is_frozen(upcoming.due_at):  # held times wait for the resume, too
            return
        if seen and upcoming.due_at <= seen and not is_full and not is_chain:
            yield f"I1: stopped at {timer.status_at}, but {upcoming.planned_for} was due before and has no record"
        return
    if timer.ending is not None or timer.status == "pending":
        return
    is_busy = timer.live + timer.waiting > 0
    if is_chained(period.timetable.schedule) and is_busy:
        return
    due_at = None if upcoming is None else upcoming.due_at
    if timer.due_at != due_at:
        yield f"I1: the timer is due at {timer.due_at}, its next planned time at {due_at}"


def records_of(rows: Sequence[tuple[Any, ...]]) -> list[RunRecord]:
    return [RunRecord(*row) for row in rows]
