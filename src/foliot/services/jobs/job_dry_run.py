"""Trying before doing: the same verbs, in a transaction that is rolled back, and what they would mean for the runs ahead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.upcoming_changes import Difference, Upcoming, difference, nothing_ahead, upcoming
from foliot.domain.schedule import PlannedTime, is_chained
from foliot.domain.schedule.warnings import cautions
from foliot.services.jobs.job_search import FIRING
from foliot.services.jobs.written_steps import WrittenJob, find_warnings
from foliot.storage.dry_run import open_dry_run
from foliot.storage.jobs import calendars, jobs
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.tx import Database, Role, Tx

Act = Callable[[Database], Awaitable[JobId | WrittenJob]]


@dataclass(frozen=True, slots=True)
class Tried:
    """How it would stand: the job, none where it would be gone; the runs ahead of it; what would change among them."""

    job: StoredJob | None
    times: tuple[PlannedTime, ...]
    difference: Difference
    warnings: tuple[str, ...]


async def tried(
    database: Database, workspace_id: WorkspaceId, act: Act, job_id: JobId | None = None
) -> Tried:
    """Do it to a rehearsal and look at what came of it. `act` answers with the job it was about; what it refuses, this refuses."""
    async with open_dry_run(database, Role.APP, workspace_id) as stage:
        async with stage.tx(Role.APP, workspace_id) as tx:
            before = nothing_ahead(tx.now) if job_id is None else (await _look(tx, job_id))[1]
        acted = await act(stage)
        job_id = acted.id if isinstance(acted, WrittenJob) else acted
        async with stage.tx(Role.APP, workspace_id) as tx:
            job, after = await _look(tx, job_id)
            warnings: tuple[str, ...] = ()
            if job is not None:
                warnings = (*cautions(job.definition.spec.schedule), *await find_warnings(tx, job))
    return Tried(job, after.times, difference(before, after), warnings)


async def _look(tx: Tx, job_id: JobId) -> tuple[StoredJob | None, Upcoming]:
    """The job and the runs ahead of it. One that is paused until an instant goes on from there."""
    job = await jobs.get(tx, job_id)
    is_paused = job is not None and job.status is JobStatus.PAUSED and job.paused_until is not None
    if job is None or not (job.status in FIRING or is_paused):
        return job, nothing_ahead(tx.now)
    spec = job.definition.spec
    chained = is_chained(spec.schedule)
    if chained and job.next_at is None:
        return job, nothing_ahead(tx.now)
    named = await calendars.by_ids(tx, spec.calendars) if spec.calendars else {}
    timetable = Rules(spec).job(job_id, job.workspace_id, job.schedule_rev, tuple(named.values())).timetable
    start = job.cursor_at if chained else tx.now
    if is_paused and job.paused_until is not None:
        start = max(start, job.paused_until)
    most = None if spec.max_runs is None else max(0, spec.max_runs - job.runs_created)
    return job, upcoming(timetable, start, tx.now, most)
