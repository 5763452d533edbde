"""Jobs as people define them: create one, look at one. Changing one is `editing.py`; stopping and starting, `job_moves.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Rules
from foliot.domain.errors import ManagedByCode, ScheduleInvalid
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.missed import TICK
from foliot.domain.planning.plan import plan_start
from foliot.domain.quotas import check_definition
from foliot.domain.schedule import Once
from foliot.domain.schedule.parse import anchored, check_schedule
from foliot.services.identity.quota_steps import check_room
from foliot.services.jobs.dependency_steps import write_edges
from foliot.services.jobs.lock_steps import append_audit, not_found
from foliot.services.scheduling.fire_steps import status_after
from foliot.services.secrets.reference_steps import write_references
from foliot.services.workers.target_steps import check_target
from foliot.storage.jobs import calendars, jobs
from foliot.storage.jobs.definitions import definition_json
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.tx import Database, Role


@dataclass(frozen=True, slots=True)
class Created:
    id: JobId
    status: JobStatus
    next_at: datetime | None


async def create(
    database: Database, scope: Scope, definition: Definition, *, enabled: bool = True
) -> Created:
    check_schedule(definition.spec.schedule)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        spec = replace(definition.spec, schedule=anchored(definition.spec.schedule, tx.now))
        definition = replace(definition, spec=spec)
        check_definition(scope.actor.quotas, definition, tx.now)
        app = definition.managed_by
        if app is not None and await jobs.is_in_app(tx, app, definition.name):
            raise ManagedByCode(
                f'The app "{app}" has a job "{definition.name}" already.',
                hint="Another worker may just have made it.",
            )
        job_id = JobId(tx.new_id())
        status, timer = _first_status(definition, tx.now, enabled=enabled), Timer(tx.now, None, None)
        if enabled:
            named = tuple((await calendars.lock_shared(tx, spec.calendars)).values())
            job = Rules(spec).job(job_id, scope.workspace_id, 1, named)
            timer = Timer(first_cursor(definition, tx.now), None, None)
            planned = plan_start(DueJob(job, status, timer), tx.now)
            status, timer = status_after(status, planned.events), planned.timer
        await check_target(tx, scope.workspace_id, spec.target)
        await jobs.insert(tx, job_id, definition, status, timer, scope.actor.name)
        if spec.calendars:
            await calendars.link(tx, job_id, spec.calendars)
        if definition.depends_on:
            await write_edges(tx, job_id, spec.schedule, definition.depends_on)
        await write_references(tx, job_id, definition, scope)
        await check_room(database, tx, scope.actor.quotas)
        await append_audit(
            tx, "job.created", ("job", job_id), scope.actor, after={"definition": definition_json(definition)}
        )
        return Created(job_id, status, timer.next_at)


async def get(database: Database, workspace_id: WorkspaceId, job_id: JobId) -> StoredJob:
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await jobs.get(tx, job_id)
        if found is None or found.workspace_id != workspace_id:
            raise not_found("job")
        return found


def first_cursor(definition: Definition, now: datetime) -> datetime:
    """From when on the times of a new schedule count: from now on. A one-shot whose moment has just gone by still runs."""
    schedule = definition.spec.schedule
    if not isinstance(schedule, Once) or schedule.at > now:
        return now
    if now - schedule.at > definition.spec.misfire.grace:
        raise ScheduleInvalid(
            "This moment has passed.",
            pointer="/schedule/at",
            hint="Name one that lies ahead, or run it by hand.",
        )
    return schedule.at - TICK


def _first_status(definition: Definition, now: datetime, *, enabled: bool) -> JobStatus:
    if not enabled:
        return JobStatus.DISABLED
    start_at = definition.spec.start_at
    return JobStatus.PENDING if start_at is not None and start_at > now else JobStatus.ACTIVE
