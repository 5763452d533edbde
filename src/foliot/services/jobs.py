"""What can be done to a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from foliot.domain.definition import Definition, Rules
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning import plan_start
from foliot.domain.records import DueJob
from foliot.domain.schedule.reading import anchored, check_schedule
from foliot.services.dependencies import write_edges
from foliot.storage import calendars, jobs
from foliot.storage.tx import Database, Role


@dataclass(frozen=True, slots=True)
class Created:
    id: JobId
    status: JobStatus
    next_at: datetime | None


async def create(
    database: Database, workspace_id: WorkspaceId, definition: Definition, by: str, *, enabled: bool = True
) -> Created:
    check_schedule(definition.spec.schedule)
    async with database.tx(Role.APP, workspace_id) as tx:
        spec = replace(definition.spec, schedule=anchored(definition.spec.schedule, tx.now))
        definition = replace(definition, spec=spec)
        job_id = JobId(tx.new_id())
        status = _first_status(definition, tx.now, enabled=enabled)
        timer = Timer(tx.now, None, None)
        if enabled:
            known = await calendars.by_ids(tx, spec.calendars) if spec.calendars else {}
            mine = tuple(known[each] for each in spec.calendars if each in known)
            due = DueJob(Rules(spec).job(job_id, workspace_id, 1, mine), status, timer)
            timer = plan_start(due, tx.now).timer
        await jobs.insert(tx, job_id, definition, status, timer, by)
        if spec.calendars:
            await calendars.link(tx, job_id, spec.calendars)
        if definition.depends_on:
            await write_edges(tx, job_id, spec.schedule, definition.depends_on)
        return Created(job_id, status, timer.next_at)


def _first_status(definition: Definition, now: datetime, *, enabled: bool) -> JobStatus:
    if not enabled:
        return JobStatus.DISABLED
    start_at = definition.spec.start_at
    return JobStatus.PENDING if start_at is not None and start_at > now else JobStatus.ACTIVE
