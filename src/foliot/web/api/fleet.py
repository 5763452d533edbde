"""/workers, /queues and /job-types: who could do the work, what is in line for them, and what they know."""

from __future__ import annotations

from typing import Literal

from foliot.handlers import registry
from foliot.services import fleet
from foliot.services.fleet import Queue, WorkerSeen
from foliot.web.api.params import Db
from foliot.web.auth import Viewer
from foliot.web.routes import api_router
from foliot.wire.fleet import JobTypeOut, JobTypesOut, QueueOut, QueuesOut, WorkerOut, WorkersOut

routes = api_router("fleet")
WHERE: tuple[Literal["server", "workers"], ...] = ("server", "workers")


@routes.get("/workers")
async def list_workers(caller: Viewer, db: Db) -> WorkersOut:
    """Those that serve this workspace: the living first, then those lost within the last day."""
    found = await fleet.workers(db, caller.workspace_id, caller.only_owner)
    return WorkersOut(items=[_worker(each) for each in found])


@routes.get("/queues")
async def list_queues(caller: Viewer, db: Db) -> QueuesOut:
    """Every queue that a job names or a worker serves, with what stands in it."""
    found = await fleet.queues(db, caller.workspace_id, caller.only_owner)
    return QueuesOut(items=[_queue(each) for each in found])


@routes.get("/job-types")
async def list_job_types(caller: Viewer, db: Db) -> JobTypesOut:
    """What `type` of a job may be: the types that this server knows, and those that live workers do."""
    served, known = await fleet.types(db, caller.workspace_id), registry.described()
    return JobTypesOut(
        items=[
            JobTypeOut(
                name=name,
                description=known[name].description if name in known else None,
                config_schema=dict(known[name].config_schema) if name in known else None,
                active=name in served,
                known_to=[where for where in WHERE if name in (known if where == "server" else served)],
                workers=served.get(name, 0),
            )
            for name in sorted(served.keys() | known.keys())
        ]
    )


def _worker(seen: WorkerSeen) -> WorkerOut:
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
        last_heartbeat_at=seen.beat_at,
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
