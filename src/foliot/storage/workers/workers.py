"""Workers and their leases. A heartbeat and the removal of a silent worker both lock the worker's row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from foliot.domain.ids import HostId, JobId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.storage.arrays import ints, uuids
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.tx import Params, Tx

ANY_QUEUE = "*"  # the queue name of a worker that serves every queue


@dataclass(frozen=True, slots=True)
class WorkerRow:
    name: str
    queues: Sequence[str]
    types: Sequence[str]
    capacity: int
    version: str
    workspace_id: WorkspaceId | None = None  # None: it serves every workspace
    principal_id: PrincipalId | None = None  # of a worker over HTTP
    host_id: HostId | None = None


@dataclass(frozen=True, slots=True)
class WorkerName:
    name: str
    host: str | None


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """A worker over HTTP. A worker of a host claims only the host's runs, from no queue."""

    id: WorkerId
    name: str
    queues: Sequence[str]
    host_id: HostId | None


@dataclass(frozen=True, slots=True)
class HeldLease:
    """The identity of a lease: enough to settle it."""

    run_id: RunId
    job_id: JobId
    fence: int
    worker_id: WorkerId


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """An attempt as its lease knows it, whatever its worker says."""

    run_id: RunId
    fence: int
    attempt: int
    leased_at: datetime


async def register(tx: Tx, worker_id: WorkerId, row: WorkerRow, alive_until: datetime) -> None:
    await tx.execute(
        sql.workers.register,
        {
            "workspace_id": row.workspace_id,
            "id": worker_id,
            "name": row.name,
            "queues": list(row.queues),
            "types": list(row.types),
            "capacity": row.capacity,
            "alive_until": alive_until,
            "version": row.version,
            "principal_id": row.principal_id,
            "host_id": row.host_id,
        },
    )


async def load_names(tx: Tx, worker_ids: Collection[WorkerId]) -> dict[WorkerId, WorkerName]:
    """Return the names of workers, removed ones included."""
    rows = (
        await tx.fetch_as(_NamedWorker, sql.workers.load_names, {"ids": list(worker_ids)})
        if worker_ids
        else []
    )
    return {row.id: row.worker for row in rows}


async def forget_names(tx: Tx, before: datetime) -> int:
    return await tx.execute(sql.workers.forget_names, {"before": before})


async def forget_names_beyond(tx: Tx, workspace_id: WorkspaceId, most: int) -> None:
    """Delete all but the `most` newest names of the workspace's own workers."""
    await tx.execute(sql.workers.forget_names_beyond, {"workspace_id": workspace_id, "most": most})


async def load_remote(
    tx: Tx, worker_id: WorkerId, workspace_id: WorkspaceId, principal_id: PrincipalId
) -> RemoteWorker | None:
    """Load a worker over HTTP; None if it was removed or another principal registered it."""
    params = {"id": worker_id, "workspace_id": workspace_id, "principal_id": principal_id}
    return await tx.fetch_one_as(RemoteWorker, sql.workers.load_remote, params)


async def record_heartbeat(
    tx: Tx, worker_id: WorkerId, alive_until: datetime, *, is_draining: bool, running_count: int
) -> bool:
    """Record a heartbeat; return False if the worker's time is over."""
    params = {
        "id": worker_id,
        "alive_until": alive_until,
        "is_draining": is_draining,
        "running_count": running_count,
    }
    return await tx.execute(sql.workers.record_heartbeat, params) == 1


async def leave(tx: Tx, worker_id: WorkerId) -> None:
    await tx.execute(sql.workers.leave, {"id": worker_id})


async def list_cancel_requests(tx: Tx, worker_id: WorkerId) -> list[tuple[RunId, int]]:
    return await tx.fetch_pairs(RunId, int, sql.workers.list_cancel_requests, {"id": worker_id})


async def list_lost_leases(
    tx: Tx, worker_id: WorkerId, working_on: Collection[tuple[RunId, int]]
) -> list[tuple[RunId, int]]:
    """Return those of these runs that it has no lease of any more."""
    if not working_on:
        return []
    run_ids, fences = zip(*working_on, strict=True)
    params = {"id": worker_id, "run_ids": uuids(run_ids), "fences": ints(fences)}
    return [(run_id, fence) for run_id, fence in await tx.fetch_tuples(sql.workers.list_lost_leases, params)]


async def count_leases(tx: Tx, worker_id: WorkerId) -> int:
    return await tx.fetch_value(int, sql.workers.count_leases, {"id": worker_id})


async def list_unknown_leases(
    tx: Tx, worker_id: WorkerId, named: Collection[tuple[RunId, int]], by: datetime
) -> list[HeldLease]:
    """List its leases from before `by` that it does not know."""
    params = {
        "id": worker_id,
        "run_ids": [run_id for run_id, _ in named],
        "fences": [fence for _, fence in named],
        "by": by,
    }
    return await _leases(tx, sql.workers.list_unknown_leases, params)


async def remove_silent(tx: Tx) -> list[tuple[WorkerId, str]]:
    """Remove workers without a heartbeat, and return their ids and names; their leases are then abandoned."""
    return await tx.fetch_pairs(WorkerId, str, sql.workers.remove_silent)


async def count_alive(tx: Tx) -> int:
    return await tx.fetch_value(int, sql.workers.count_alive)


async def list_leases(tx: Tx, worker_id: WorkerId) -> list[HeldLease]:
    return await _leases(tx, sql.workers.list_leases, {"id": worker_id})


async def list_running_attempts(tx: Tx, worker_id: WorkerId) -> list[RunningAttempt]:
    return await tx.fetch_as(RunningAttempt, sql.workers.list_running_attempts, {"id": worker_id})


async def list_abandoned_leases(tx: Tx, limit: int) -> list[HeldLease]:
    return await _leases(tx, sql.leases.abandoned, {"limit": limit})


async def list_overdue_leases(tx: Tx, by: datetime, limit: int) -> list[HeldLease]:
    return await _leases(tx, sql.leases.overdue, {"by": by, "limit": limit})


async def list_ignored_cancels(tx: Tx, by: datetime, limit: int) -> list[HeldLease]:
    return await _leases(tx, sql.workers.list_ignored_cancels, {"by": by, "limit": limit})


async def _leases(tx: Tx, query: SqlQuery, params: Params) -> list[HeldLease]:
    return await tx.fetch_as(HeldLease, query, params)


class _NamedWorker(NamedTuple):
    id: WorkerId
    worker: WorkerName
