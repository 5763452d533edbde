"""Looking at who works: workers, the queues they serve, the types they know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from foliot.domain.access import Scope
from foliot.services.workers.unserved import Unserved, unserved
from foliot.storage.tx import Database, Role
from foliot.storage.workers import overview
from foliot.storage.workers import workers as rows
from foliot.storage.workers.overview import QueueOverview, WorkerOverview

__all__ = ["Queue", "WorkerOverview", "forget_lost", "queues", "workers"]

LOST_SHOWN = timedelta(days=1)
NAMES_KEPT = timedelta(days=400)
MOST = 1_000  # workers or queues in one answer


@dataclass(frozen=True, slots=True)
class Queue:
    seen: QueueOverview
    unserved: Sequence[Unserved]  # what stands in it that no live worker could take


async def workers(database: Database, scope: Scope) -> list[WorkerOverview]:
    """Those that serve this workspace: the living first, then those lost within the last day."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await overview.workers(tx, tx.now - LOST_SHOWN, MOST, scope.visible_owner)


async def queues(database: Database, scope: Scope) -> list[Queue]:
    """Every queue that a job names or a worker serves, in the order of their names."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await overview.queues(tx, MOST, scope.visible_owner)
    warned = [] if scope.visible_owner else await unserved(database, scope.workspace_id, timedelta(0))
    return [Queue(seen, [each for each in warned if each.queue == seen.name]) for seen in found]


async def forget_lost(database: Database) -> int:
    """For the janitor: workers that were lost long ago are news no more, and what workers were called a year ago is not asked."""
    async with database.tx(Role.ENGINE) as tx:
        await rows.forget_names(tx, tx.now - NAMES_KEPT)
        return await overview.forget_lost(tx, tx.now - LOST_SHOWN)
