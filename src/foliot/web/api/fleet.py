"""/workers, /queues and /job-types: who could do the work, what is in line for them, and what they know."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path

from foliot.domain.errors import NotFound
from foliot.handlers import registry
from foliot.services.hints import Hint
from foliot.services.jobs import job_types
from foliot.services.workers import overview
from foliot.services.workers.overview import Queue, WorkerOverview
from foliot.web.api.params import Db, Tell
from foliot.web.auth import Admin, Viewer
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.fleet import (
    JobTypeOut,
    JobTypesOut,
    JobTypeSwitch,
    QueueOut,
    QueuesOut,
    WorkerOut,
    WorkersOut,
)

routes = api_router("fleet")
TypeIn = Annotated[str, Path(min_length=1, max_length=64)]
WHERE: tuple[Literal["server", "workers"], ...] = ("server", "workers")


@routes.get("/workers")
async def list_workers(caller: Viewer, db: Db) -> WorkersOut:
    """Those that serve this workspace: the living first, then those lost within the last day."""
    found = await overview.workers(db, caller.scope)
    return WorkersOut(items=[_worker(each) for each in found])


@routes.get("/queues")
async def list_queues(caller: Viewer, db: Db) -> QueuesOut:
    """Every queue that a job names or a worker serves, with what stands in it."""
    found = await overview.queues(db, caller.scope)
    return QueuesOut(items=[_queue(each) for each in found])


@routes.get("/job-types")
async def list_job_types(caller: Viewer, db: Db) -> JobTypesOut:
    """What `type` of a job may be: the types that this server knows, and those that workers do or did."""
    return JobTypesOut(items=_types(await job_types.look(db, caller.workspace_id)))


@routes.put("/job-types/{job_type}", responses={**NOT_FOUND, **WITH_BODY})
async def switch_job_type(
    job_type: TypeIn, asked: JobTypeSwitch, caller: Admin, db: Db, tell: Tell
) -> JobTypeOut:
    """Switch a type off for this workspace, or on again. Off, nothing of its jobs starts: planned times and runs that another job would
    trigger are recorded as skipped with the reason `type_disabled`, running one by hand is refused, and runs that are ready or are to be
    tried again are held until it is on. Runs under way end as they would.
    """
    workspace_id = caller.workspace_id
    if not any(each.name == job_type for each in _types(await job_types.look(db, workspace_id))):
        raise NotFound("There is no such job type.", hint="GET /job-types lists them.")
    await job_types.switch(db, caller.scope, job_type, enabled=asked.enabled, reason=asked.reason)
    if asked.enabled:
        tell(Hint.READY)
    return next(each for each in _types(await job_types.look(db, workspace_id)) if each.name == job_type)


def _types(seen: job_types.Seen) -> list[JobTypeOut]:
    """In the order of their names. Of what is installed here, this server speaks itself."""
    here = registry.describe_types()
    found = []
    for name in sorted(here.keys() | seen.told.keys() | seen.workers.keys() | seen.off.keys()):
        known, off = here.get(name) or seen.told.get(name), seen.off.get(name)
        places = (("server", name in here), ("workers", name in seen.workers))
        found.append(
            JobTypeOut(
                name=name,
                description=None if known is None else known.description,
                config_schema=None if known is None else dict(known.config_schema),
                active=name in seen.workers,
                enabled=off is None,
                disabled_reason=None if off is None else off.reason,
                known_to=[where for where in WHERE if dict(places)[where]],
                workers=seen.workers.get(name, 0),
            )
        )
    return found


def _worker(seen: WorkerOverview) -> WorkerOut:
    return WorkerOut(
        id=seen.id,
        name=seen.name,
        status="lost" if not seen.is_alive else "draining" if seen.is_draining else "alive",
        queues=list(seen.queues),
        host=seen.host,
        types=list(seen.types),
        capacity=seen.capacity,
        running=seen.running,
        since=seen.started_at,
        last_heartbeat_at=seen.heartbeat_at,
        version=seen.version,
    )


def _queue(queue: Queue) -> QueueOut:
    seen = queue.seen
    return QueueOut(
        name=seen.name,
        ready=seen.ready,
        waiting=seen.waiting,
        running=seen.running,
        oldest_ready_at=seen.oldest,
        workers=seen.workers,
        warnings=[each.sentence for each in queue.unserved],
    )
