"""Workers come, beat and go. One that was silent for too long has lost its runs and must come again under a new id."""

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

LEASE = timedelta(seconds=30)  # how long a worker may be silent
BEATS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """What a heartbeat learns: whether this worker still counts, which of its runs are to be cancelled, which were taken from it."""

    is_alive: bool
    cancels: Sequence[tuple[RunId, int]] = field(default_factory=list)  # with the fence
    gone: Sequence[tuple[RunId, int]] = field(default_factory=list)


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
    """A fresh id each time: a name would let a restarted worker pass for its dead self."""
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
    """`working_on` are runs whose claim was answered before this was asked: one that has no lease by now is its worker's no more."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        alive_until, running_count = tx.now + lease, len(working_on)
        if not await workers.record_heartbeat(
            tx, worker_id, alive_until, is_draining=draining, running_count=running_count
        ):
            return HeartbeatReply(is_alive=False)
        cancels = await workers.list_cancel_requests(tx, worker_id)
        return HeartbeatReply(
            is_alive=True, cancels=cancels, gone=await workers.list_lost_leases(tx, worker_id, working_on)
        )


async def leave(database: Database, worker_id: WorkerId) -> None:
    """What it still holds is abandoned with this, and found by the next sweep."""
    async with database.tx(Role.ENGINE) as tx:
        await workers.leave(tx, worker_id)


async def held(database: Database, worker_id: WorkerId) -> list[HeldLease]:
    async with database.tx(Role.ENGINE) as tx:
        return await workers.list_leases(tx, worker_id)


async def count_alive(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        return await workers.count_alive(tx)
