"""Planned times of many jobs within a time span: ordered, bounded, with the instant up to which the list is complete.

One line is one planned time, or a series: times of one job that are less than an hour apart and have the same outcome.

Why: docs/decisions/504-agenda-statistics-and-large-workspaces.md
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count
from math import ceil

from foliot.domain.errors import ScheduleTooDear
from foliot.domain.freeze import Freeze, FreezePolicy, freeze_at
from foliot.domain.ids import JobId
from foliot.domain.job import Job
from foliot.domain.planning.missed import TICK
from foliot.domain.schedule import (
    Cron,
    Interval,
    PlannedTime,
    SkipReason,
    Timetable,
    count_between,
    latest_to_run_until,
    latest_until,
    planned_after,
)
from foliot.domain.schedule.work_budget import WorkBudget, work_budget

MOST_LINES = 1_000
MOST_STEPS = 30_000  # planned times that one agenda computes: some tenths of a second
WORK_A_STEP = 10  # steps through windows and calendars that weigh as much as one planned time
MOST_COUNTED = 2_000  # times in one line: every minute of a day, and more
OFTEN = timedelta(hours=1)
_LOOK_BACK = timedelta(days=1)  # times deferred into the span were planned before it


class Fate(StrEnum):
    RUNS = "runs"
    SKIPPED = "skipped"
    HELD = "held"  # by a freeze, until it is over


@dataclass(frozen=True, slots=True)
class FireStop:
    """The reason for which planned times before `until` are skipped; without an end, all of them."""

    reason: SkipReason
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AgendaJob:
    """A job with planned times ahead. `since` is at or before the first of them; jobs are sorted by it."""

    job: Job
    since: datetime
    cursor: datetime
    next_at: datetime | None
    resumes_at: datetime | None = None  # of a pause that ends by itself
    runs_left: int | None = None  # of max_runs
    skip_next: bool = False
    skip_until: datetime | None = None  # how far that goes; None: the next planned time alone
    freezes: tuple[Freeze, ...] = ()
    stops: tuple[FireStop, ...] = ()  # the first that holds at a time is its reason


@dataclass(frozen=True, slots=True)
class AgendaLine:
    """One line of the agenda. `count` is None above the counting bound; `last` is set for a series."""

    first: PlannedTime
    fate: Fate
    reason: SkipReason | None = None
    freeze: Freeze | None = None
    last: PlannedTime | None = None
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class AgendaEntry:
    job_id: JobId
    line: AgendaLine


@dataclass(frozen=True, slots=True)
class Agenda:
    """`entries` contains every start before `complete_until`, and some later ones."""

    entries: tuple[AgendaEntry, ...]
    complete_until: datetime


@dataclass(frozen=True, slots=True)
class Density:
    """Planned runs in each of the equal parts of a span. `jobs` of the given ones were counted before the work bound was reached."""

    counts: tuple[float, ...]
    jobs: int


class _Spent(Exception):  # not an error: the work is bounded
    """The budget of steps is used up."""


@dataclass(slots=True)
class _Effort:
    left: int
    budgets: dict[JobId, WorkBudget] = field(default_factory=dict)
    lines: dict[object, tuple[list[AgendaLine], Iterator[AgendaLine]]] = field(default_factory=dict)


def agenda(
    jobs: Sequence[AgendaJob],
    start: datetime,
    end: datetime,
    *,
    more_since: datetime | None = None,
    most: int = MOST_LINES,
    steps: int = MOST_STEPS,
) -> Agenda:
    """List the planned times of the jobs from `start` up to `end`. `more_since`: further jobs have times from that instant on."""
    # When missing jobs may have times before the span, nothing is complete, and a part is better than nothing.
    is_partial = more_since is not None and more_since <= start
    until = end if more_since is None or is_partial else min(end, more_since)
    merge = _Merge(_Effort(steps), list(jobs), start, end)
    entries: list[AgendaEntry] = []
    try:
        while (at := merge.next_at()) is not None and at < until:
            if len(entries) == most:
                until = at
                break
            entries.append(merge.pop())
    except _Spent:
        until = max(start, min(until, merge.reached))
        entries += merge.rest()[: most - len(entries)]
    return Agenda(tuple(entries), start if is_partial else until)


def density(
    jobs: Sequence[AgendaJob],
    begin: datetime,
    end: datetime,
    parts: int,
    *,
    now: datetime,
    steps: int = MOST_STEPS,
) -> Density:
    """Count the planned times that run in each part of the span from `begin` to `end`, from `now` on.

    Times that follow each other closely count as evenly spread. Jobs with one timetable are computed once.
    """
    effort, lines, counted = _Effort(steps), dict[int, tuple[AgendaLine, int]](), 0
    for ahead in jobs:
        try:
            found = list(_shared(effort, ahead, max(begin, now), end))
        except _Spent:
            break
        counted += 1
        for line in found:
            if line.fate is Fate.RUNS:
                _, jobs_of_line = lines.get(id(line), (line, 0))
                lines[id(line)] = (line, jobs_of_line + 1)
    counts, width = [0.0] * parts, (end - begin).total_seconds() / parts
    for line, jobs_of_line in lines.values():
        for part, times in _spread(line, begin, width, parts):
            counts[part] += times * jobs_of_line
    return Density(tuple(counts), counted)


def _spread(line: AgendaLine, begin: datetime, width: float, parts: int) -> Iterator[tuple[int, float]]:
    """Yield the parts of the span that the times of a line fall into, each with how many."""
    first = (line.first.due_at - begin).total_seconds()
    many = line.count or MOST_COUNTED
    if line.last is None or many == 1:
        yield min(max(int(first // width), 0), parts - 1), 1.0
        return
    step = ((line.last.due_at - begin).total_seconds() - first) / (many - 1)
    if step >= width:
        for place in range(many):
            yield min(max(int((first + step * place) // width), 0), parts - 1), 1.0
        return
    part, place = min(max(int(first // width), 0), parts - 1), 0
    while place < many:
        past = many if part == parts - 1 else min(many, max(ceil(((part + 1) * width - first) / step), place))
        yield part, float(past - place)
        part, place = part + 1, past


class _Merge:
    """Merge the lines of all jobs in order. A job is evaluated only when the order reaches it, so most of many jobs cost nothing."""

    def __init__(self, effort: _Effort, jobs: list[AgendaJob], start: datetime, end: datetime) -> None:
        self._effort, self._start, self._end = effort, start, end
        self._jobs = jobs[::-1]
        self._heads: list[tuple[datetime, int, JobId, AgendaLine, Iterator[AgendaLine]]] = []
        self._order = count()
        self.reached = start  # no earlier time can still be found

    def next_at(self) -> datetime | None:
        while self._jobs and (not self._heads or self._jobs[-1].since <= self._heads[0][0]):
            self.reached = max(self.reached, self._jobs[-1].since)
            ahead = self._jobs.pop()
            self._push(ahead.job.id, _shared(self._effort, ahead, self._start, self._end))
        return self._heads[0][0] if self._heads else None

    def pop(self) -> AgendaEntry:
        self.reached, _, job_id, line, lines = heapq.heappop(self._heads)
        self._push(job_id, lines)
        return AgendaEntry(job_id, line)

    def rest(self) -> list[AgendaEntry]:
        """Return the part computed so far."""
        return [
            AgendaEntry(job_id, line)
            for _, _, job_id, line, _ in sorted(self._heads, key=lambda head: head[:2])
        ]

    def _push(self, job_id: JobId, lines: Iterator[AgendaLine]) -> None:
        line = next(lines, None)
        if line is not None:
            heapq.heappush(self._heads, (line.first.due_at, next(self._order), job_id, line, lines))


def _shared(effort: _Effort, ahead: AgendaJob, start: datetime, end: datetime) -> Iterator[AgendaLine]:
    """Compute the lines of a timetable once for all jobs that share it."""
    if ahead.skip_next or ahead.runs_left is not None or ahead.job.is_chained:
        yield from _lines(effort, ahead, start, end)
        return
    key = (id(ahead.job.timetable), _after(ahead, start), ahead.freezes, ahead.stops)
    known, source = effort.lines.setdefault(key, ([], _lines(effort, ahead, start, end)))
    for place in count():
        if place == len(known):
            line = next(source, None)
            if line is None:
                return
            known.append(line)
        yield known[place]


def _lines(effort: _Effort, ahead: AgendaJob, start: datetime, end: datetime) -> Iterator[AgendaLine]:
    try:
        yield from _lines_within_budget(effort, ahead, start, end)
    except ScheduleTooDear:
        return  # the tick records the error, and explain says so; the other jobs have their lines


def _lines_within_budget(
    effort: _Effort, ahead: AgendaJob, start: datetime, end: datetime
) -> Iterator[AgendaLine]:
    if ahead.job.is_chained and ahead.next_at is None:
        return  # the end of its live run sets the next time
    simple = _uncounted(effort, ahead, start, end)
    if simple is not None:
        yield simple
        return
    line: AgendaLine | None = None
    for planned, fate, reason, freeze in _fates(effort, ahead, start, end):
        latest = None if line is None else line.last or line.first
        if line is None or latest is None:
            line = AgendaLine(planned, fate, reason, freeze)
        elif (line.fate, line.reason) != (fate, reason) or planned.due_at - latest.due_at >= OFTEN:
            yield line
            line = AgendaLine(planned, fate, reason, freeze)
        elif line.count == MOST_COUNTED:
            with work_budget(_budget_of(effort, ahead)):
                last = latest_to_run_until(ahead.job.timetable, planned.planned_for - TICK, end - TICK)
            yield replace(line, last=last or planned, count=None)
            return
        else:
            line = replace(line, last=planned, count=(line.count or 0) + 1)
    if line is not None:
        yield line


def _fates(
    effort: _Effort, ahead: AgendaJob, start: datetime, end: datetime
) -> Iterator[tuple[PlannedTime, Fate, SkipReason | None, Freeze | None]]:
    """Yield each planned time in the span with its expected outcome."""
    after = _after(ahead, start)
    runs_left, skip_next = _left_at(effort, ahead, after), _skips_at(effort, ahead, after)
    planned = _step(effort, ahead, after)
    while planned is not None and planned.planned_for < end:
        following = None if ahead.job.is_chained else _step(effort, ahead, planned.planned_for)
        fate, reason, freeze = Fate.RUNS, planned.skip, None
        if reason is None and following is not None and following.due_at <= planned.due_at:
            reason = SkipReason.WINDOW  # of times deferred to one opening, the newest runs
        if reason is None:
            reason = next(
                (stop.reason for stop in ahead.stops if stop.until is None or planned.due_at < stop.until),
                None,
            )
        if reason is None and (freeze := freeze_at(ahead.freezes, planned.due_at)) is not None:
            reason = SkipReason.FROZEN if freeze.after is FreezePolicy.SKIP else None
            fate = Fate.HELD
        elif reason is None and skip_next:
            until = ahead.skip_until or planned.planned_for
            skip_next = planned.planned_for < until
            reason = SkipReason.OPERATOR if planned.planned_for <= until else None
        if reason is not None:
            fate = Fate.SKIPPED
        elif runs_left is not None:
            if runs_left == 0:
                return
            runs_left -= 1
        if start <= planned.due_at < end:
            yield planned, fate, reason, freeze
        planned = following


def _step(effort: _Effort, ahead: AgendaJob, after: datetime) -> PlannedTime | None:
    if effort.left == 0:
        raise _Spent
    effort.left -= 1
    timetable = ahead.job.timetable
    if not timetable.is_gated:
        return planned_after(timetable, after)
    with work_budget(_budget_of(effort, ahead)) as budget:
        before = budget.left
        found = planned_after(timetable, after)
        effort.left = max(0, effort.left - (before - budget.left) // WORK_A_STEP)
    return found


def _budget_of(effort: _Effort, ahead: AgendaJob) -> WorkBudget:
    """Return one budget for all lines of a job: lines of many jobs are computed in turn."""
    return effort.budgets.setdefault(ahead.job.id, WorkBudget())


def _after(ahead: AgendaJob, start: datetime) -> datetime:
    """Return the instant to search from: after the cursor, and after the end of a pause."""
    known = _known(ahead)
    if ahead.job.is_chained:
        return known
    back = _LOOK_BACK if _moves(ahead.job.timetable) else timedelta(0)
    return max(known, start - back - TICK)


def _known(ahead: AgendaJob) -> datetime:
    return ahead.cursor if ahead.resumes_at is None else max(ahead.cursor, ahead.resumes_at)


def _skips_at(effort: _Effort, ahead: AgendaJob, after: datetime) -> bool:
    """Return whether a skip that the operator asked for is not used up before the span."""
    if not ahead.skip_next or ahead.skip_until is not None:
        return ahead.skip_next
    first = _step(effort, ahead, _known(ahead))
    return first is None or first.planned_for > after


def _left_at(effort: _Effort, ahead: AgendaJob, after: datetime) -> int | None:
    """Return how many of max_runs remain at the start of the span."""
    known = _known(ahead)
    if ahead.runs_left is None or after <= known:
        return ahead.runs_left
    before = count_between(ahead.job.timetable, known, after, min(ahead.runs_left, MOST_COUNTED))
    effort.left = max(0, effort.left - (MOST_COUNTED if before is None else before))
    return 0 if before is None else max(0, ahead.runs_left - before)


def _uncounted(effort: _Effort, ahead: AgendaJob, start: datetime, end: datetime) -> AgendaLine | None:
    """Count the times of a plain interval without stepping through them."""
    timetable, schedule = ahead.job.timetable, ahead.job.timetable.schedule
    if (
        not isinstance(schedule, Interval)
        or ahead.job.is_chained
        or schedule.every >= OFTEN
        or ahead.runs_left is not None
        or ahead.skip_next
        or ahead.stops
        or _moves(timetable)
        or any(freeze.start_at < end for freeze in ahead.freezes)
    ):
        return None
    after = _after(ahead, start)
    first = _step(effort, ahead, after)
    last = latest_until(timetable, after, end - TICK)
    if first is None or last is None or first.planned_for == last.planned_for:
        return None
    return AgendaLine(first, Fate.RUNS, last=last, count=count_between(timetable, after, end - TICK, 10**9))


def _moves(timetable: Timetable) -> bool:
    """Return whether a time may start later than planned."""
    schedule = timetable.schedule
    spread = schedule.spread if isinstance(schedule, Cron | Interval) else timedelta(0)
    return bool(timetable.window or timetable.calendars or spread)
