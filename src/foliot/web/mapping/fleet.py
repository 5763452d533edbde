"""Workers, queues, job types, hosts and limits on the wire."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from foliot.handlers import registry
from foliot.services.jobs import job_types
from foliot.services.workers.hosts import Host, InstanceRow
from foliot.services.workers.limits import Limit
from foliot.services.workers.overview import LeaseOverview, Queue, WorkerOverview, WorkspaceShare
from foliot.wire.fleet import (
    BoundJob,
    HostOut,
    InstanceOut,
    JobTypeOut,
    LeaseOut,
    LimitOut,
    QueueOut,
    WorkerOut,
    WorkspaceShareOut,
)

WHERE: tuple[Literal["server", "workers"], ...] = ("server", "workers")


def job_types_out(seen: job_types.JobTypesOverview) -> list[JobTypeOut]:
    """Return the types by name. For types that this server has, its own description is used."""
    here = registry.describe_types()
    found = []
    for name in sorted(here.keys() | seen.described.keys() | seen.workers.keys() | seen.off.keys()):
        known, off = here.get(name) or seen.described.get(name), seen.off.get(name)
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


def worker_out(seen: WorkerOverview) -> WorkerOut:
    return WorkerOut.from_value(
        seen,
        status="lost" if not seen.is_alive else "draining" if seen.is_draining else "alive",
        queues=list(seen.queues),
        types=list(seen.types),
        since=seen.started_at,
        last_heartbeat_at=seen.heartbeat_at,
    )


def lease_out(lease: LeaseOverview) -> LeaseOut:
    return LeaseOut.from_value(
        lease,
        worker=lease.worker_id,
        worker_name=lease.worker,
        since=lease.leased_at,
        overdue=lease.is_overdue,
        overdue_ms=lease.overdue_for // timedelta(milliseconds=1),
    )


def queue_out(queue: Queue) -> QueueOut:
    seen = queue.seen
    return QueueOut.from_value(
        seen, oldest_ready_at=seen.oldest, warnings=[each.sentence for each in queue.unserved]
    )


def share_out(share: WorkspaceShare) -> WorkspaceShareOut:
    return WorkspaceShareOut.from_value(share, workspace=share.id, oldest_ready_at=share.oldest)


def host_out(host: Host) -> HostOut:
    row = host.row
    return HostOut.from_value(
        row,
        status=host.status.value,
        last_seen_at=row.sighting.last_seen_at,
        labels=dict(row.labels),
        types=list(row.types),
        jobs=None if host.bound is None else [BoundJob(id=job_id, name=name) for job_id, name in host.bound],
        instances=[instance_out(each) for each in host.instances],
    )


def instance_out(row: InstanceRow) -> InstanceOut:
    return InstanceOut.from_value(row, labels=dict(row.labels))


def limit_out(limit: Limit) -> LimitOut:
    return LimitOut(key=limit.key or None, cap=limit.cap, in_use=limit.in_use, waiting=limit.waiting)


def limit_preview(limit: Limit) -> LimitOut:
    return limit_out(limit).model_copy(update={"dry_run": True})
