"""Batches and previews of writes: apply the verb in a transaction, look at the result, and roll everything back.

`apply_and_roll_back` opens that transaction; the `preview_…` functions are its verbs where the answer compares before and after.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from foliot.domain.access import Scope
from foliot.domain.definition import Rules
from foliot.domain.ids import FIRST_ID, CalendarId, JobId, RunId, SecretId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.upcoming_changes import (
    Upcoming,
    UpcomingDifference,
    difference,
    nothing_ahead,
    upcoming,
)
from foliot.domain.schedule import PlannedTime, is_chained
from foliot.domain.schedule.calendar import CalendarScope
from foliot.services.evaluation import evaluate
from foliot.services.jobs.job_search import FIRING
from foliot.services.jobs.written_steps import WrittenJob, find_warnings
from foliot.services.runs import explain, history
from foliot.services.secrets import master_key, secrets
from foliot.services.secrets.secrets import SecretRow
from foliot.services.secrets.vault import Vault
from foliot.storage.dry_run import PartFailedError, open_batch, open_dry_run
from foliot.storage.jobs import calendars, jobs
from foliot.storage.jobs.calendars import CalendarRow
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.runs.run_history import RunRecord
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

MOST_JOBS = 1_000  # a preview locks and compares the timers of at most so many jobs
Result = TypeVar("Result")
JobVerb = Callable[[Database], Awaitable[object]]  # one that makes a job returns a WrittenJob


@dataclass(frozen=True, slots=True)
class JobPreview:
    """The job after the change, None where it would be gone; its upcoming runs, and how they differ from those before."""

    job: StoredJob | None
    times: tuple[PlannedTime, ...]
    difference: UpcomingDifference
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunPreview:
    run: RunRecord
    sentence: str


@dataclass(frozen=True, slots=True)
class MovedJob:
    id: JobId
    name: str
    before: datetime | None
    after: datetime | None


@dataclass(frozen=True, slots=True)
class CalendarPreview:
    """The calendar after the change, None where it would be gone; and the jobs whose next run would move."""

    calendar: CalendarRow | None
    moved: tuple[MovedJob, ...]
    jobs: int
    is_complete: bool  # False: only the first MOST_JOBS were compared


async def apply_and_roll_back(
    database: Database,
    workspace_id: WorkspaceId | None,
    verb: Callable[[Database], Awaitable[Result]],
    *,
    system: bool = False,
) -> Result:
    """Return the verb's answer and keep nothing. Errors of the verb are raised as they are."""
    async with open_dry_run(database, Role.APP, workspace_id, system=system) as stage:
        return await verb(stage)


async def apply_together(
    database: Database,
    workspace_id: WorkspaceId,
    verbs: Callable[[Database], Awaitable[Result]],
    *,
    keep: bool = True,
) -> Result:
    """Call `verbs` with a database whose transactions are parts of one. An error that it raises undoes everything, and so does
    `keep=False`. When a part fails, `verbs` is called again with a savepoint for each part: it may go on after an error, to find
    all of them. Without savepoints, a batch that succeeds takes two statements less for each part.
    """
    opened = open_batch if keep else open_dry_run
    with suppress(PartFailedError):
        async with opened(database, Role.APP, workspace_id, savepoints=False) as stage:
            try:
                result = await verbs(stage)
            except Exception:
                if not stage.has_failed:
                    raise
            if stage.has_failed:
                raise PartFailedError
            return result
    async with opened(database, Role.APP, workspace_id) as stage:
        return await verbs(stage)


async def preview_job(
    database: Database, workspace_id: WorkspaceId, verb: JobVerb, job_id: JobId | None = None
) -> JobPreview:
    """Apply `verb` to the job. `job_id` is None for a new one."""
    async with database.tx(Role.APP, workspace_id) as tx:
        before = nothing_ahead(tx.now) if job_id is None else (await _upcoming(tx, job_id))[1]
    written = await verb(database)
    async with database.tx(Role.APP, workspace_id) as tx:
        written_id = written.id if isinstance(written, WrittenJob) else job_id
        assert written_id is not None
        job, after = await _upcoming(tx, written_id)
        warnings: tuple[str, ...] = ()
        if job is not None:
            warnings = await find_warnings(tx, job)
    return JobPreview(job, after.times, difference(before, after), warnings)


async def _upcoming(tx: Tx, job_id: JobId) -> tuple[StoredJob | None, Upcoming]:
    """Return the job and its upcoming runs. A job that is paused until an instant continues there."""
    job = await jobs.get(tx, job_id)
    is_paused = job is not None and job.status is JobStatus.PAUSED and job.paused_until is not None
    if job is None or not (job.status in FIRING or is_paused):
        return job, nothing_ahead(tx.now)
    spec = job.definition.spec
    chained = is_chained(spec.schedule)
    if chained and job.next_at is None:
        return job, nothing_ahead(tx.now)
    mine = await calendars.load_for(tx, job.workspace_id, spec)
    timetable = Rules(spec).job(job_id, job.workspace_id, job.schedule_rev, mine).timetable
    start = job.cursor_at if chained else tx.now
    if is_paused and job.paused_until is not None:
        start = max(start, job.paused_until)
    most = None if spec.max_runs is None else max(0, spec.max_runs - job.runs_created)
    return job, await evaluate(timetable, lambda: upcoming(timetable, start, tx.now, most))


async def preview_run(
    database: Database, scope: Scope, verb: Callable[[Database], Awaitable[RunId]]
) -> RunPreview:
    """Apply `verb`, which returns the run it created or ended, and explain that run."""
    run_id = await verb(database)
    explained = await explain.explain_run(database, scope, run_id)
    return RunPreview(await history.run(database, scope, run_id), explained.explanation.sentence)


async def preview_calendar(
    database: Database,
    workspace_id: WorkspaceId,
    verb: Callable[[Database], Awaitable[CalendarId]],
    calendar_id: CalendarId | None = None,
    *,
    new_scope: CalendarScope | None = None,
    deletes: bool = False,
) -> CalendarPreview:
    """Apply `verb`, which returns the calendar it wrote. `calendar_id` is None for a new calendar."""
    async with database.tx(Role.APP, workspace_id) as tx:
        users = dict(
            await calendars.list_users(tx, calendar_id, FIRST_ID, MOST_JOBS + 1, other_scope=new_scope)
        )
        found = None if calendar_id is None else await calendars.get(tx, calendar_id)
        before = await _next_times(tx, users)
    written = await verb(database)
    async with database.tx(Role.APP, workspace_id) as tx:
        after = await _next_times(tx, users)
        row = None if deletes else await calendars.get(tx, written)
    moved = tuple(
        MovedJob(job_id, name, before.get(job_id), after.get(job_id))
        for job_id, name in list(users.items())[:MOST_JOBS]
        if before.get(job_id) != after.get(job_id)
    )
    count = max(len(users), 0 if found is None else found.users)
    return CalendarPreview(row, moved, count, len(users) <= MOST_JOBS)


async def _next_times(tx: Tx, users: dict[JobId, str]) -> dict[JobId, datetime | None]:
    rows = await timers.read(tx, list(users)) if users else []
    return {row.job_id: row.timer.next_at for row in rows}


async def preview_secret(
    database: Database, vault: Vault, scope: Scope, verb: Callable[[Database, Vault], Awaitable[SecretId]]
) -> SecretRow:
    """Apply `verb`, which returns the secret it wrote, and roll it back. It seals with a temporary key where there is no key yet."""
    sealing = await master_key.may_seal(database, vault)

    async def look(stage: Database) -> SecretRow:
        return await secrets.get(stage, Scope(scope.workspace_id), await verb(stage, sealing))

    return await apply_and_roll_back(database, scope.workspace_id, look)
