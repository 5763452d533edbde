"""Workers: who is alive, and what they hold. A worker's row is where its heartbeat and its strike-off meet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.ids import HostId, JobId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.storage.arrays import ints, uuids
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.tx import Params, Tx

ANY_QUEUE = "*"  # what a worker names that serves them all


@dataclass(frozen=True, slots=True)
class WorkerRow:
    name: str
    queues: Sequence[str]
    types: Sequence[str]
    capacity: int
    version: str
    workspace_id: WorkspaceId | None = None  # None serves every workspace
    principal_id: PrincipalId | None = None  # whose key it comes with, where it speaks HTTP
    host_id: HostId | None = None


@dataclass(frozen=True, slots=True)
class WorkerName:
    name: str
    host: str | None  # that it worked for


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """A worker that speaks HTTP. One of a host serves what is meant for the host, and no queue."""

    id: WorkerId
    name: str
    queues: Sequence[str]
    host_id: HostId | None


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease by its name: enough to settle it."""

    run_id: RunId
    job_id: JobId
    fence: int
    worker_id: WorkerId


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
            "now": tx.now,
            "alive_until": alive_until,
            "version": row.version,
            "principal_id": row.principal_id,
            "host_id": row.host_id,
        },
    )


async def load_names(tx: Tx, worker_ids: Collection[WorkerId]) -> dict[WorkerId, WorkerName]:
    """Also of those that are gone."""
    rows = await tx.fetch(sql.workers.names, {"ids": list(worker_ids)}) if worker_ids else ()
    return {row["id"]: WorkerName(row["name"], row["host"]) for row in rows}


async def forget_names(tx: Tx, before: datetime) -> int:
    return await tx.execute(sql.workers.forget_names, {"before": before})


async def forget_names_beyond(tx: Tx, workspace_id: WorkspaceId, most: int) -> None:
    """Of a workspace's own workers, the newest are kept."""
    await tx.execute(sql.workers.forget_names_beyond, {"workspace_id": workspace_id, "most": most})


async def load_remote(
    tx: Tx, worker_id: WorkerId, workspace_id: WorkspaceId, principal_id: PrincipalId
) -> RemoteWorker | None:
    """None for one that was given up for lost, or that somebody else registered."""
    params = {"id": worker_id, "workspace_id": workspace_id, "principal_id": principal_id, "now": tx.now}
    row = await tx.fetch_one(sql.workers.remote, params)
    return None if row is None else RemoteWorker(**row)


async def record_heartbeat(
    tx: Tx, worker_id: WorkerId, alive_until: datetime, *, is_draining: bool, running_count: int
) -> bool:
    """False where the worker has been given up for lost."""
    params = {
        "id": worker_id,
        "alive_until": alive_until,
        "is_draining": is_draining,
        "running_count": running_count,
        "now": tx.now,
    }
    return await tx.execute(sql.workers.beat, params) == 1


async def leave(tx: Tx, worker_id: WorkerId) -> None:
    await tx.execute(sql.workers.leave, {"id": worker_id})


async def list_cancel_requests(tx: Tx, worker_id: WorkerId) -> list[tuple[RunId, int]]:
    rows = await tx.fetch(sql.workers.cancels, {"id": worker_id})
    return [(row["run_id"], row["fence"]) for row in rows]


async def list_lost_leases(
    tx: Tx, worker_id: WorkerId, working_on: Collection[tuple[RunId, int]]
) -> list[tuple[RunId, int]]:
    """Which of these it does not hold any more."""
    if not working_on:
        return []
    run_ids, fences = zip(*working_on, strict=True)
    params = {"id": worker_id, "run_ids": uuids(run_ids), "fences": ints(fences)}
    return [(run_id, fence) for run_id, fence in await tx.fetch_tuples(sql.workers.gone, params)]


async def list_unknown_leases(
    tx: Tx, worker_id: WorkerId, named: Collection[tuple[RunId, int]], by: datetime
) -> list[HeldLease]:
    """What it holds since before `by` without knowing."""
    params = {
        "id": worker_id,
        "run_ids": [run_id for run_id, _ in named],
        "fences": [fence for _, fence in named],
        "by": by,
    }
    return await _leases(tx, sql.workers.unheard_of, params)


async def remove_silent(tx: Tx) -> list[tuple[WorkerId, str]]:
    """The silent, by id and name; from here on their leases are abandoned."""
    rows = await tx.fetch(sql.workers.strike_off, {"now": tx.now})
    return [(row["id"], row["name"]) for row in rows]


async def count_alive(tx: Tx) -> int:
    row = await tx.fetch_one(sql.workers.count_alive, {"now": tx.now})
    return int(row["alive"]) if row else 0


async def list_leases(tx: Tx, worker_id: WorkerId) -> list[HeldLease]:
    return await _leases(tx, sql.workers.held, {"id": worker_id})


async def list_abandoned_leases(tx: Tx, limit: int) -> list[HeldLease]:
    return await _leases(tx, sql.leases.abandoned, {"limit": limit})


async def list_overdue_leases(tx: Tx, by: datetime, limit: int) -> list[HeldLease]:
    return await _leases(tx, sql.leases.overdue, {"by": by, "limit": limit})


async def ignored_cancels(tx: Tx, by: datetime, limit: int) -> list[HeldLease]:
    return await _leases(tx, sql.workers.ignored_cancels, {"by": by, "limit": limit})


async def _leases(tx: Tx, query: SqlQuery, params: Params) -> list[HeldLease]:
    rows = await tx.fetch(query, params)
    return [HeldLease(row["run_id"], row["job_id"], row["fence"], row["worker_id"]) for row in rows]
