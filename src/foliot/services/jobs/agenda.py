"""The agenda: planned runs in a time range, with expected durations; and the preview of a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foliot.domain.access import Scope
from foliot.domain.agenda import AgendaEntry, AgendaJob, AgendaLine, Fate, agenda
from foliot.domain.errors import FoliotError, Invalid, ScheduleTooDear
from foliot.domain.freeze import FreezePolicy
from foliot.domain.ids import CalendarId, JobId, WorkspaceId
from foliot.domain.schedule import Calendar, PlannedTime, Schedule, Timetable, preview
from foliot.domain.schedule.calendar_year import closed_spans
from foliot.domain.schedule.notes import notes_on
from foliot.domain.schedule_lint import lint_schedule
from foliot.storage.jobs import agenda as stored
from foliot.storage.jobs import calendars
from foliot.storage.jobs.agenda import ALL, AgendaFilter, UpcomingJob
from foliot.storage.jobs.freezes import ScopedFreeze
from foliot.storage.runs import explain_queries
from foliot.storage.tx import Database, Role

__all__ = ["AgendaFilter", "AgendaItem", "AgendaLine", "AgendaPage", "Closure", "Fate", "load_agenda"]

A_DAY = timedelta(days=1)
LONGEST = timedelta(days=31)
MOST_JOBS = 10_000
MOST_CALENDARS, MOST_CLOSURES = 20, 50  # calendars, and closings of each


@dataclass(frozen=True, slots=True)
class AgendaItem:
    job_id: JobId
    name: str
    schedule: Schedule
    line: AgendaLine
    expected: timedelta | None  # None before the first success


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
    with_closures: bool = False,
) -> AgendaPage:
    """Load the planned runs from `start` (now) to `end` (a day later). Past times belong to the run history.

    The closures are those of the calendars that these jobs use, from a day before `start` on.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        start, end = _stretch(tx.now, start, end)
        freezes = await explain_queries.list_freezes(tx, scope.workspace_id, tx.now)
        held = any(
            each.freeze.after is not FreezePolicy.SKIP and each.freeze.start_at <= tx.now for each in freezes
        )
        wanted = replace(wanted, owner_id=scope.visible_owner)
        rows = await stored.list_upcoming(tx, wanted, end, MOST_JOBS + 1, held=held)
        known = await calendars.load(tx, [scope.workspace_id], (row.rules.spec for row in rows))
    more_since = rows[MOST_JOBS].since if len(rows) > MOST_JOBS else None
    jobs = [
        _ahead(scope.workspace_id, row, known.of(scope.workspace_id, row.rules.spec), freezes)
        for row in rows[:MOST_JOBS]
    ]
    # In a thread: computing tens of thousands of times would block other requests.
    found = await asyncio.to_thread(
        agenda, [job for job in jobs if job is not None], start, end, more_since=more_since
    )
    closures = await asyncio.to_thread(_closures, known.known, start - A_DAY, end) if with_closures else ()
    by_id = {row.id: row for row in rows}
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        durations = await stored.load_usual_durations(tx, list({entry.job_id for entry in found.entries}))
    items = tuple(_planned(entry, by_id[entry.job_id], durations) for entry in found.entries)
    return AgendaPage(start, end, items, found.complete_until, closures)


def _closures(known: Mapping[CalendarId, Calendar], start: datetime, end: datetime) -> tuple[Closure, ...]:
    """The first closings of each calendar. One that is too dear to evaluate is left out: explain says so of its jobs."""
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


def _ahead(
    workspace_id: WorkspaceId, row: UpcomingJob, mine: tuple[Calendar, ...], freezes: Sequence[ScopedFreeze]
) -> AgendaJob | None:
    spec = row.rules.spec
    try:
        job = row.rules.job(row.id, workspace_id, row.schedule_rev, mine)
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
    )


def _planned(entry: AgendaEntry, row: UpcomingJob, durations: dict[JobId, timedelta]) -> AgendaItem:
    return AgendaItem(row.id, row.name, row.rules.spec.schedule, entry.line, durations.get(row.id))


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
