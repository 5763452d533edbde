"""What the ledger of one job must hold, worked out from what was asked of it: the planned times of its timetable, each recorded once.

The time engine that names them is refereed elsewhere, by the brute-force oracle; here the question is what the engine made of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foliot.domain.admission import Opening, find_opening
from foliot.domain.run_plan import MAX_COUNTED
from foliot.domain.schedule import Interval, PlannedTime, Timetable, is_chained, planned_after, times_between
from tools.simulation.chronicle import Chapter, Story

MOST = 1_000_000
STOPPED = frozenset({"paused", "failed", "completed", "expired", "disabled"})


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the job's timer stands."""

    status: str
    status_at: datetime
    cursor_at: datetime
    due_at: datetime | None
    ending: str | None
    runs_created: int
    live: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A row of the ledger that the schedule made."""

    schedule_rev: int
    planned_for: datetime
    planned_key: datetime
    fold: int
    planned_until: datetime | None
    count: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def judge(
    story: Story,
    standing: Standing,
    records: Sequence[Recorded],
    ends: AbstractSet[datetime | None],
    ticks: Sequence[datetime],
) -> Iterator[str]:
    """Everything that is wrong with the history of this job, as sentences that begin with the broken invariant."""
    for place, chapter in enumerate(story.chapters):
        mine = [record for record in records if record.schedule_rev == chapter.schedule_rev]
        is_last = place == len(story.chapters) - 1
        until = standing.cursor_at if is_last else story.chapters[place + 1].since
        if is_chained(chapter.timetable.schedule):
            yield from _chained(story, chapter, mine, ends)
        else:
            yield from _complete(
                chapter, mine, until, is_last=is_last, is_counted=story.spec.max_runs is not None
            )
        if is_last:
            yield from _timer(story, chapter, standing, ticks)
    known = {chapter.schedule_rev for chapter in story.chapters}
    for record in records:
        if record.schedule_rev not in known:
            yield f"I1: a record of schedule revision {record.schedule_rev}, which nobody made"


def may_begin(story: Story, available_at: datetime, now: datetime) -> bool:
    """Whether all was open when the run became available, and still is. An edit may have come in between."""
    return any(
        _is_open(chapter.timetable, available_at) and _is_open(chapter.timetable, now)
        for chapter in story.chapters[-2:]
    )


def _is_open(timetable: Timetable, at: datetime) -> bool:
    allowed = find_opening(timetable, at)
    return isinstance(allowed, Opening) and allowed.at == at


def _complete(
    chapter: Chapter, records: Sequence[Recorded], until: datetime, *, is_last: bool, is_counted: bool
) -> Iterator[str]:
    """Every planned time is in exactly one record: its own, or a gap's."""
    expected = times_between(chapter.timetable, chapter.since, until, MOST)
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
    record: Recorded, planned: PlannedTime, open_times: set[datetime], edited_at: datetime | None
) -> Iterator[str]:
    if planned.planned_for not in open_times:
        yield f"I2: {planned.planned_for} has two records"
    open_times.discard(planned.planned_for)
    early = [at for at in (record.created_at, record.started_at) if at is not None and at < planned.due_at]
    is_dropped = record.created_at == edited_at and record.started_at is None  # put off, then edited away
    if early and not is_dropped:
        yield f"I3: {planned.planned_for} was due at {planned.due_at} and acted on at {early[0]}"


def _chained(
    story: Story, chapter: Chapter, records: Sequence[Recorded], ends: AbstractSet[datetime | None]
) -> Iterator[str]:
    """fixed_delay: each planned time lies `every` after the end of a run, or after creation, edit or resume."""
    schedule, start_at = chapter.timetable.schedule, chapter.timetable.start_at
    assert isinstance(schedule, Interval)
    starts = {chapter.since, *story.resumed, *ends}
    if start_at is not None:
        starts.add(start_at)
    before: Recorded | None = None
    for record in records:
        if record.planned_for - schedule.every not in starts:
            yield f"I1: {record.planned_for} follows neither the end of a run nor a start"
        if before is not None and before.finished_at is not None and record.planned_for < before.finished_at:
            yield f"I5: {record.planned_for} was planned before the run of {before.planned_for} had ended"
        if record.created_at < record.planned_for:
            yield f"I3: {record.planned_for} was recorded at {record.created_at}"
        before = record


def _timer(story: Story, chapter: Chapter, standing: Standing, ticks: Sequence[datetime]) -> Iterator[str]:
    """An active job's timer stands at the first planned time not yet recorded, and nothing due is left behind."""
    upcoming = planned_after(chapter.timetable, standing.cursor_at)
    if standing.status == "archived":  # perhaps long after it was stopped
        return
    if standing.status in STOPPED:
        resumed_at = max(story.resumed, default=chapter.since)
        stopped_at = min([standing.status_at, *(at for at in story.paused if at > resumed_at)])
        before = bisect_left(ticks, stopped_at)
        seen = ticks[before - 1] if before else None
        is_full = story.spec.max_runs is not None and standing.runs_created >= story.spec.max_runs
        is_chain = is_chained(chapter.timetable.schedule)
        if upcoming is None or story.is_frozen(upcoming.due_at):  # held times wait for the resume, too
            return
        if seen and upcoming.due_at <= seen and not is_full and not is_chain:
            yield f"I1: stopped at {standing.status_at}, but {upcoming.planned_for} was due before and has no record"
        return
    if standing.ending is not None or standing.status == "pending":
        return
    is_busy = standing.live + standing.waiting > 0
    if is_chained(chapter.timetable.schedule) and is_busy:
        return
    due_at = None if upcoming is None else upcoming.due_at
    if standing.due_at != due_at:
        yield f"I1: the timer is due at {standing.due_at}, its next planned time at {due_at}"


def records_of(rows: Sequence[tuple[Any, ...]]) -> list[Recorded]:
    return [Recorded(*row) for row in rows]
