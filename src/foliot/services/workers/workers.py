"""Register workers and record heartbeats. A worker that was silent too long has lost its runs and must register again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from foliot import __version__
from foliot.domain.ids import RunId, WorkerId, WorkspaceId
from foliot.storage.jobs import job_types
from foliot.storage.jobs.job_types import JobTypeDescription
from foliot.storage.tx import Database, Role
from foliot.storage.workers import workers
from foliot.storage.workers.workers import HeldLease, WorkerRow

LEASE = timedelta(seconds=30)  # the longest silence of a worker
BEATS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer to a heartbeat: whether the worker is alive, and which of its runs are cancelled or were taken."""

    is_alive: bool
    cancels: Sequence[tuple[RunId, int]] = field(default_factory=list)  # with the fence
    gone: Sequence[tuple[RunId, int]] = field(default_factory=list)
    has_unknown: bool = False  # whether it is said to hold runs that it did not name


async def register(
    database: Database,
    name: str,
    queues: Sequence[str],
    types: Sequence[str],
    capacity: int,
    workspace_id: WorkspaceId | None = None,
    *,
    lease: timedelta = LEASE,
    described: Sequence[JobTypeDescription] = (),
) -> WorkerId:
    """Register under a new id: a restarted worker must not pass for its predecessor."""
    row = WorkerRow(name, queues, types, capacity, __version__, workspace_id)
    async with database.tx(Role.ENGINE) as tx:
        worker_id = WorkerId(tx.new_id())
        await workers.register(tx, worker_id, row, tx.now + lease)
        if described:
            await job_types.describe(tx, workspace_id, described)
    return worker_id


async def beat(
    database: Database,
    worker_id: WorkerId,
    *,
    draining: bool = False,
    working_on: Collection[tuple[RunId, int]] = (),
    lease: timedelta = LEASE,
) -> HeartbeatReply:
    """Record a heartbeat. A run in `working_on` without a lease is no longer this worker's."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        alive_until, running_count = tx.now + lease, len(working_on)
        if not await workers.record_heartbeat(
            tx, worker_id, alive_until, is_draining=draining, running_count=running_count
        ):
            return HeartbeatReply(is_alive=False)
        cancels = await workers.list_cancel_requests(tx, worker_id)
        gone = await workers.list_lost_leases(tx, worker_id, working_on)
        # More leases than named runs that have one: it does not know some.
        has_unknown = await workers.count_leases(tx, worker_id) > len(working_on) - len(gone)
        return HeartbeatReply(is_alive=True, cancels=cancels, gone=gone, has_unknown=has_unknown)


async def leave(database: Database, worker_id: WorkerId) -> None:
    """Unregister. The next sweep finds the leases it still holds."""
    async with database.tx(Role.ENGINE) as tx:
        await workers.leave(tx, worker_id)


async def held(database: Database, worker_id: WorkerId) -> list[HeldLease]:
    async with database.tx(Role.ENGINE) as tx:
        return await workers.list_leases(tx, worker_id)


async def count_alive(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        return await workers.count_alive(tx)
