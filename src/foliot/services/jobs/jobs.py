"""Create and read jobs. `job_edits.py` changes them, `job_status.py` pauses and resumes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from foliot.domain.access import Scope
from foliot.domain.defaults import JobDefaults
from foliot.domain.definition import Definition, Rules
from foliot.domain.errors import ManagedByCode, ScheduleInvalid, not_found
from foliot.domain.ids import JobId, PrincipalId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.missed import TICK
from foliot.domain.planning.plan import plan_start
from foliot.domain.quotas import check_definition
from foliot.domain.schedule import Once
from foliot.domain.schedule.parse import anchored, check_schedule
from foliot.services.evaluation import evaluate
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.quota_steps import check_job_quota
from foliot.services.jobs.dependency_steps import write_edges
from foliot.services.jobs.lock_steps import check_revision
from foliot.services.jobs.owner_steps import resolve_owner
from foliot.services.jobs.written_steps import WrittenJob, load_written
from foliot.services.scheduling.fire_steps import status_after
from foliot.services.secrets.reference_steps import write_references
from foliot.services.workers.host_steps import check_target
from foliot.storage.identity import defaults
from foliot.storage.jobs import calendars, job_types, jobs
from foliot.storage.jobs.definitions import definition_json
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.tx import Database, Role, Tx

__all__ = ["WrittenJob"]


@dataclass(frozen=True, slots=True)
class JobDraft:
    """The view of the database for code that builds a definition: the transaction that will store it."""

    tx: Tx
    before: StoredJob | None = None  # None: a new job

    async def config_schema(self, job_type: str) -> Mapping[str, Any] | None:
        """Return the schema of this type's config, when a worker has described it."""
        found = (await job_types.list_known(self.tx, job_type)).get(job_type)
        return None if found is None else found.config_schema

    async def load_defaults(self) -> JobDefaults:
        """Return the values for fields that the job leaves out. They stay as they are until the transaction ends."""
        assert self.tx.workspace_id is not None
        return await defaults.load_locked(self.tx, self.tx.workspace_id)

    async def resolve_owner(
        self, scope: Scope, given: str | None, default: PrincipalId | None
    ) -> PrincipalId | None:
        """Return the owner: the member that is named, the owner so far, or `default` for a new job."""
        current = default if self.before is None else self.before.definition.owner_id
        return await resolve_owner(self.tx, scope, given, current)

    async def require_revision(self, expected: int | None) -> None:
        if self.before is not None:
            await check_revision(self.tx, self.before, expected)


Define = Callable[[JobDraft], Awaitable[Definition]]


async def create(
    database: Database,
    scope: Scope,
    definition: Definition | Define,
    *,
    enabled: bool = True,
    with_warnings: bool = False,
) -> WrittenJob:
    """Store a new job with its first planned time. A `definition` that is a function is called in the transaction."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        if callable(definition):
            definition = await definition(JobDraft(tx))  # a function checks the schedule that it builds
        else:
            check_schedule(definition.spec.schedule)
        spec = replace(definition.spec, schedule=anchored(definition.spec.schedule, tx.now))
        definition = replace(definition, spec=spec)
        check_definition(scope.actor.quotas, definition, tx.now)
        app = definition.managed_by
        if app is not None and await jobs.is_in_app(tx, app, definition.name):
            raise ManagedByCode(
                f'The app "{app}" has a job "{definition.name}" already.',
                hint="Another worker may have created it just now.",
            )
        job_id = JobId(tx.new_id())
        status, timer = _first_status(definition, tx.now, enabled=enabled), Timer(tx.now, None, None)
        if enabled:
            found = await calendars.lock_shared(tx, spec.calendars)
            job = Rules(spec).job(job_id, scope.workspace_id, 1, found.of(scope.workspace_id, spec))
            timer = Timer(first_cursor(definition, tx.now), None, None)
            due = DueJob(job, status, timer)
            planned = await evaluate(job.timetable, lambda: plan_start(due, tx.now))
            status, timer = status_after(status, planned.events), planned.timer
        if spec.target is not None:
            await check_target(tx, scope.workspace_id, spec.target)
        await jobs.insert(tx, job_id, definition, status, timer, scope.actor.name)
        if spec.calendars:
            await calendars.link(tx, job_id, spec.calendars)
        if definition.depends_on:
            await write_edges(tx, job_id, scope, definition)
        await write_references(tx, job_id, definition, scope)
        await check_job_quota(database, tx, scope.actor)
        await append_audit(
            tx, "job.created", ("job", job_id), scope.actor, after={"definition": definition_json(definition)}
        )
        return await load_written(tx, job_id, with_warnings=with_warnings)


async def get(database: Database, workspace_id: WorkspaceId, job_id: JobId) -> StoredJob:
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await jobs.get(tx, job_id)
        if found is None or found.workspace_id != workspace_id:
            raise not_found("job")
        return found


def first_cursor(definition: Definition, now: datetime) -> datetime:
    """Return the time from which a new schedule counts: now. A one-shot whose time has just passed still runs."""
    schedule = definition.spec.schedule
    if not isinstance(schedule, Once) or schedule.at > now:
        return now
    if now - schedule.at > definition.spec.misfire.grace:
        raise ScheduleInvalid(
            "This time has passed.",
            pointer="/schedule/at",
            hint="Choose a time in the future, or run the job manually.",
        )
    return schedule.at - TICK


def _first_status(definition: Definition, now: datetime, *, enabled: bool) -> JobStatus:
    if not enabled:
        return JobStatus.DISABLED
    start_at = definition.spec.start_at
    return JobStatus.PENDING if start_at is not None and start_at > now else JobStatus.ACTIVE
