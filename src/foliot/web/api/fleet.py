"""/workers, /queues, /capacity and /job-types."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from foliot.domain.errors import NotFound
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.jobs import job_types
from foliot.services.workers import overview
from foliot.web.api.params import Db
from foliot.web.api.writes import Writing
from foliot.web.auth import Admin, System, Viewer
from foliot.web.mapping.fleet import job_types_out, lease_out, queue_out, share_out, worker_out
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.fleet import (
    CapacitySharesOut,
    JobTypeOut,
    JobTypesOut,
    JobTypeSwitch,
    LeasesOut,
    QueuesOut,
    WorkersOut,
)

routes = api_router("fleet")
TypeIn = Annotated[str, Path(min_length=1, max_length=64)]


@routes.get("/workers")
async def list_workers(caller: Viewer, db: Db) -> WorkersOut:
    """List the workers that serve this workspace: live ones first, then those lost within the last day."""
    found = await overview.workers(db, caller.scope)
    return WorkersOut(items=[worker_out(each) for each in found])


@routes.get("/leases")
async def list_leases(
    caller: Viewer,
    db: Db,
    overdue: Annotated[
        bool, Query(description="Only those past their deadline, or whose worker fell silent.")
    ] = False,
) -> LeasesOut:
    """List the running attempts: which worker holds each, since when, until when, and when it times out; the next deadline first."""
    found = await overview.leases(db, caller.scope, overdue=overdue)
    return LeasesOut(items=[lease_out(each) for each in found])


@routes.get("/queues")
async def list_queues(caller: Viewer, db: Db) -> QueuesOut:
    """List every queue that a job names or a worker serves, with its counts."""
    found = await overview.queues(db, caller.scope)
    return QueuesOut(items=[queue_out(each) for each in found])


@routes.get("/capacity/shares")
async def list_capacity_shares(caller: System, db: Db) -> CapacitySharesOut:
    """List how many runs each workspace has ready and running. For keys of the installation."""
    return CapacitySharesOut(items=[share_out(each) for each in await overview.shares(db)])


@routes.get("/job-types")
async def list_jobjob_types_out(caller: Viewer, db: Db) -> JobTypesOut:
    """List the values of a job's `type`: the types that this server has, and those of workers."""
    return JobTypesOut(items=job_types_out(await job_types.look(db, caller.workspace_id)))


@routes.put("/job-types/{job_type}", responses={**NOT_FOUND, **WITH_BODY})
async def switch_job_type(
    job_type: TypeIn, asked: JobTypeSwitch, caller: Admin, write: Writing
) -> JobTypeOut:
    """Switch a type off for this workspace, or on again. Off, nothing of its jobs starts: planned times and runs that another job would
    trigger are recorded as skipped with the reason `type_disabled`, running one manually is refused, and runs that are ready or are to be
    tried again are held until it is on. Runs under way end as they would.
    """
    workspace_id = caller.workspace_id

    async def find(db: Database) -> JobTypeOut | None:
        found = job_types_out(await job_types.look(db, workspace_id))
        return next((each for each in found if each.name == job_type), None)

    async def verb(db: Database) -> JobTypeOut:
        await job_types.set_type_enabled(
            db, caller.scope, job_type, enabled=asked.enabled, reason=asked.reason
        )
        found = await find(db)
        assert found is not None
        return found

    if await find(write.db) is None:
        raise NotFound("There is no such job type.", hint="GET /job-types lists them.")
    return await write.apply(verb, lambda found: found, *((Hint.READY,) if asked.enabled else ()))
