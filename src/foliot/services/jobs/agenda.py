"""The agenda: planned runs in a time range, with expected durations; and the preview of a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foliot.domain.access import Scope
from foliot.domain.agenda import (
    MOST_LINES,
    MOST_STEPS,
    AgendaJob,
    AgendaLine,
    Fate,
    FireStop,
    agenda,
    density,
)
from foliot.domain.definition import Rules
from foliot.domain.errors import FoliotError, Invalid, ScheduleTooDear
from foliot.domain.freeze import FreezePolicy
from foliot.domain.ids import CalendarId, JobId, WorkspaceId
from foliot.domain.schedule import Calendar, PlannedTime, Schedule, SkipReason, Timetable, preview
from foliot.domain.schedule.calendar_year import closed_spans
from foliot.domain.schedule.notes import notes_on
from foliot.domain.schedule_lint import lint_schedule
from foliot.services.runs.explain_steps import StartNotes, load_firing_notes
from foliot.storage.jobs import agenda as stored
from foliot.storage.jobs import calendars, job_types
from foliot.storage.jobs.agenda import ALL, AgendaFilter, UpcomingJob
from foliot.storage.jobs.calendars import JobCalendars
from foliot.storage.jobs.freezes import ScopedFreeze
from foliot.storage.runs import explain_queries
from foliot.storage.timers import fire_quotas
from foliot.storage.tx import Database, Role, Tx

__all__ = ["MOST_LINES", "AgendaFilter", "AgendaLine", "Fate"]

A_DAY = timedelta(days=1)
LONGEST = timedelta(days=31)
MOST_JOBS = 10_000
SPARE_JOBS = 200  # beyond the lines of an agenda, for jobs whose next time is not in it
SAMPLE = 1_000  # jobs that a density is estimated from
STEPS_OF_SAMPLE = 10_000  # planned times computed for an estimate
MOST_ESTIMATES = 500
MOST_CALENDARS, MOST_CLOSURES = 20, 50  # calendars, and closings of each


@dataclass(frozen=True, slots=True)
class AgendaItem:
    job_id: JobId
    name: str
    schedule: Schedule
    line: AgendaLine
    expected: timedelta | None  # None before the first success
    notes: tuple[str, ...] = ()  # what would keep its run from starting now


@dataclass(frozen=True, slots=True)
class Closure:
    """A span in which a calendar closes."""

    calendar_id: CalendarId
    name: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class AgendaPage:
    """`items` has every run from `start` up to `complete_until`; from there to `end` it may lack some."""

    start: datetime
    end: datetime
    items: tuple[AgendaItem, ...]
    complete_until: datetime
    closures: tuple[Closure, ...] = ()
    notes: tuple[str, ...] = ()  # what keeps every time from running

    @property
    def truncated(self) -> bool:
        return self.complete_until < self.end


async def load_agenda(
    database: Database,
    scope: Scope,
    wanted: AgendaFilter = ALL,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: int = MOST_LINES,
    with_closures: bool = False,
) -> AgendaPage:
    """Load the planned runs from `start` (now) to `end` (a day later), at most `limit` lines. Past times belong to the run history.

    The closures are those of the calendars that these jobs use, from a day before `start` on.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        start, end = _stretch(tx.now, start, end)
        freezes = await explain_queries.list_freezes(tx, scope.workspace_id, tx.now)
        held = _is_held(freezes, tx.now)
        wanted = replace(wanted, owner_id=scope.visible_owner)
        # From now on, the jobs come in the order of their lines, so that few more of them are needed than lines.
        most = limit + SPARE_JOBS if start <= tx.now and not held else MOST_JOBS
        rows = await stored.list_upcoming(tx, wanted, end, most + 1, held=held)
        jobs, known = await _prepare(tx, scope.workspace_id, rows[:most], freezes)
        notes = tuple([each async for each in load_firing_notes(tx)])
    more_since = rows[most].since if len(rows) > most else None
    # In a thread: computing tens of thousands of times would block other requests.
    found = await asyncio.to_thread(agenda, jobs, start, end, more_since=more_since, most=limit)
    closures = await asyncio.to_thread(_closures, known.known, start - A_DAY, end) if with_closures else ()
    by_id = {row.id: row for row in rows}
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        durations = await stored.load_usual_durations(tx, list({entry.job_id for entry in found.entries}))
        start_notes = StartNotes(tx, scope.workspace_id)
        planned = {each.job.id: each.job for each in jobs}
        items = []
        for entry in found.entries:
            row, line = by_id[entry.job_id], entry.line
            spec, is_run = row.rules.spec, line.fate is Fate.RUNS
            waits = await start_notes.of(planned[row.id], spec, line.first.due_at) if is_run else ()
            items.append(AgendaItem(row.id, row.name, spec.schedule, line, durations.get(row.id), waits))
    return AgendaPage(start, end, tuple(items), found.complete_until, closures, notes)


def _closures(known: Mapping[CalendarId, Calendar], start: datetime, end: datetime) -> tuple[Closure, ...]:
    """Return the first closings of each calendar. One that is too dear to evaluate is left out: explain says so of its jobs."""
    found: list[Closure] = []
    for calendar_id, calendar in sorted(known.items(), key=lambda each: each[1].name)[:MOST_CALENDARS]:
        with suppress(ScheduleTooDear):
            spans = closed_spans(calendar, start, end, MOST_CLOSURES)
            found += [Closure(calendar_id, calendar.name, *span) for span in spans]
    return tuple(found)


def _stretch(now: datetime, start: datetime | None, end: datetime | None) -> tuple[datetime, datetime]:
    if start is not None and end is not None and end <= start:
        raise Invalid("A time range ends after it starts.", pointer="/to")
    begin = now if start is None else max(start, now)
    until = (start or now) + A_DAY if end is None else end
    if until - (start or now) > LONGEST:
        raise Invalid(f"An agenda is for at most {LONGEST.days} days.", pointer="/to")
    if until <= now:
        raise Invalid(
            "This time has passed.",
            pointer="/to",
            hint="For past runs, use /runs with since and until.",
        )
    return begin, until


@dataclass(frozen=True, slots=True)
class AgendaDensity:
    """Planned runs in each of the equal parts of a span, as of an instant. Estimated where not all `jobs` were counted."""

    start: datetime
    end: datetime
    counts: tuple[float, ...]
    jobs: int  # with planned times, as far as that is known
    counted: int
    as_of: datetime
    closures: tuple[Closure, ...] = ()  # of the calendars of the counted jobs


async def load_density(
    database: Database,
    scope: Scope,
    wanted: AgendaFilter,
    *,
    start: datetime,
    end: datetime,
    parts: int,
    with_closures: bool = False,
) -> AgendaDensity:
    """Count the planned runs from now on in each part of a span. Of many jobs a sample is counted, at most once a minute."""
    if not timedelta(0) < end - start <= LONGEST:
        raise Invalid(f"A span of at most {LONGEST.days} days, and it ends after it starts.", pointer="/to")
    wanted = replace(wanted, owner_id=scope.visible_owner)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        minute = tx.now.replace(second=0, microsecond=0)
        key = (scope.workspace_id, wanted, start, end, parts, with_closures, minute)
        if (known := _estimates.get(key)) is not None:
            return known
        freezes = await explain_queries.list_freezes(tx, scope.workspace_id, tx.now)
        jobs, rows = await stored.sample_upcoming(tx, wanted, end, SAMPLE)
        able, known_calendars = await _prepare(tx, scope.workspace_id, rows, freezes)
    steps = MOST_STEPS if len(rows) == jobs else STEPS_OF_SAMPLE
    found = await asyncio.to_thread(density, able, start, end, parts, now=tx.now, steps=steps)
    share = len(rows) / jobs * found.jobs / len(able) if able else 1.0
    counts = tuple(each / share for each in found.counts) if share else found.counts
    is_exact = found.jobs == len(able) and len(rows) == jobs
    closures = await asyncio.to_thread(_closures, known_calendars.known, start, end) if with_closures else ()
    made = AgendaDensity(start, end, counts, jobs, jobs if is_exact else found.jobs, tx.now, closures)
    if not is_exact:
        if len(_estimates) >= MOST_ESTIMATES:
            _estimates.clear()
        _estimates[key] = made
    return made


_estimates: dict[object, AgendaDensity] = {}  # of this minute; older ones are never read again


def _is_held(freezes: Sequence[ScopedFreeze], now: datetime) -> bool:
    """Return whether a freeze holds timers, so that their next times are unknown."""
    return any(each.freeze.after is not FreezePolicy.SKIP and each.freeze.start_at <= now for each in freezes)


async def _prepare(
    tx: Tx, workspace_id: WorkspaceId, rows: Sequence[UpcomingJob], freezes: Sequence[ScopedFreeze]
) -> tuple[list[AgendaJob], JobCalendars]:
    """Read the rules of each job, once, with its calendars and freezes. Jobs that cannot be read are left out."""
    read = [(row, row.rules) for row in rows]
    known = await calendars.load(tx, [workspace_id], (rules.spec for _, rules in read))
    stops = await _load_stops(tx, read)
    jobs = [
        _ahead(workspace_id, row, rules, known.of(workspace_id, rules.spec), freezes, stops.get(row.id, ()))
        for row, rules in read
    ]
    return [job for job in jobs if job is not None], known


async def _load_stops(tx: Tx, read: Sequence[tuple[UpcomingJob, Rules]]) -> dict[JobId, tuple[FireStop, ...]]:
    """Return what skips the planned times of these jobs, in the order in which explain names it."""
    disabled = await job_types.list_disabled(tx)
    budget = await fire_quotas.closed_until(tx)
    quotas = await fire_quotas.used_up_until(tx, [row.id for row, _ in read])
    found: dict[JobId, tuple[FireStop, ...]] = {}
    for row, rules in read:
        stops: list[FireStop] = []
        if rules.spec.type in disabled:
            stops.append(FireStop(SkipReason.TYPE_DISABLED))
        if rules.spec.shadow:
            stops.append(FireStop(SkipReason.SHADOW))
        if budget is not None:
            stops.append(FireStop(SkipReason.BUDGET, budget))
        if (until := quotas.get(row.id)) is not None:
            stops.append(FireStop(SkipReason.QUOTA, until))
        if stops:
            found[row.id] = tuple(stops)
    return found


def _ahead(
    workspace_id: WorkspaceId,
    row: UpcomingJob,
    rules: Rules,
    mine: tuple[Calendar, ...],
    freezes: Sequence[ScopedFreeze],
    stops: tuple[FireStop, ...],
) -> AgendaJob | None:
    spec = rules.spec
    try:
        job = rules.job(row.id, workspace_id, row.schedule_rev, mine)
    except FoliotError:
        return None  # its definition cannot be read; the tick fails that job, and explain says so
    covering = tuple(
        each.freeze for each in freezes if each.covers(workspace_id, row.id, spec.tags, spec.queue)
    )
    return AgendaJob(
        job=job,
        since=row.since,
        cursor=row.cursor,
        next_at=row.next_at,
        resumes_at=row.paused_until,
        runs_left=None if spec.max_runs is None else max(0, spec.max_runs - row.runs_created),
        skip_next=row.skip_next,
        skip_until=row.skip_until,
        freezes=covering,
        stops=stops,
    )


@dataclass(frozen=True, slots=True)
class PreviewedSchedule:
    schedule: Schedule
    times: tuple[PlannedTime, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def preview_times(schedule: Schedule, after: datetime, n: int) -> PreviewedSchedule:
    timetable = Timetable(schedule)
    times = preview(timetable, after, n)
    return PreviewedSchedule(
        schedule, times, notes_on(timetable, after, times), lint_schedule(timetable, after)
    )
