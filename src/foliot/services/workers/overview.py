"""Workers and queues of a workspace, and the ready runs that no live worker serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.access import Scope
from foliot.domain.ids import WorkspaceId
from foliot.domain.run import Target
from foliot.storage.tx import Database, Role
from foliot.storage.workers import overview
from foliot.storage.workers import workers as worker_rows
from foliot.storage.workers.overview import LeaseOverview, QueueOverview, WorkerOverview, WorkspaceShare

__all__ = ["LeaseOverview", "WorkerOverview", "WorkspaceShare"]

LOST_SHOWN = timedelta(days=1)
NAMES_KEPT = timedelta(days=400)
MOST = 1_000  # workers or queues in one answer
PATIENCE = timedelta(minutes=1)
MOST_GROUPS = 100  # of unserved runs, by queue and type
OFF_BY_DEFAULT = "command"
BRIDGED = {  # the settings that a worker needs for each bridge
    "celery": "FOLIOT_CELERY_BROKER_URL and FOLIOT_CELERY_RESULT_URL",
    "rq": "FOLIOT_BRIDGE_REDIS_URL",
    "bullmq": "FOLIOT_BRIDGE_REDIS_URL",
}


@dataclass(frozen=True, slots=True)
class Unserved:
    """Ready runs of one queue and type that no live worker can claim."""

    queue: str
    type: str
    runs: int
    since: datetime  # when the oldest could have started
    target: Target | None = None

    @property
    def sentence(self) -> str:
        if self.target is not None:
            return f'No host is online that does type "{self.type}" for {self.target.words}.'
        return nobody_serves(self.queue, self.type)


@dataclass(frozen=True, slots=True)
class Queue:
    seen: QueueOverview
    unserved: Sequence[Unserved]


async def workers(database: Database, scope: Scope) -> list[WorkerOverview]:
    """List the workers that serve this workspace: live ones first, then those lost within the last day."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await overview.list_workers(tx, tx.now - LOST_SHOWN, MOST, scope.visible_owner)


async def leases(database: Database, scope: Scope, *, overdue: bool = False) -> list[LeaseOverview]:
    """List the running attempts, the next deadline first; with `overdue` only those past their deadline or their worker's lease."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await overview.list_leases(tx, MOST, scope.visible_owner, overdue=overdue)


async def queues(database: Database, scope: Scope) -> list[Queue]:
    """List every queue that a job names or a worker serves, by name."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await overview.list_queues(tx, MOST, scope.visible_owner)
    warned = [] if scope.visible_owner else await unserved(database, scope.workspace_id, timedelta(0))
    return [Queue(seen, [each for each in warned if each.queue == seen.name]) for seen in found]


async def shares(database: Database) -> list[WorkspaceShare]:
    """List what each workspace has ready and running: who waits for whom. For the installation's administrators."""
    async with database.tx(Role.ENGINE) as tx:
        return await overview.list_shares(tx, MOST)


async def forget_lost(database: Database) -> int:
    """Delete workers that were lost long ago, and names that are too old to appear in run histories."""
    async with database.tx(Role.ENGINE) as tx:
        await worker_rows.forget_names(tx, tx.now - NAMES_KEPT)
        return await overview.forget_lost(tx, tx.now - LOST_SHOWN)


async def unserved(
    database: Database, workspace_id: WorkspaceId, patience: timedelta = PATIENCE
) -> list[Unserved]:
    """Group the unserved runs by queue and type, longest wait first."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await overview.list_unserved(tx, tx.now - patience, MOST_GROUPS)
    return [Unserved(*group) for group in found]


def nobody_serves(queue: str, kind: str) -> str:
    return f'No live worker serves type "{kind}" on queue "{queue}".'


def remedy(queue: str, kind: str) -> str:
    if kind == OFF_BY_DEFAULT:
        return f"Commands are off unless a worker allows them: start one that serves queue {queue} with FOLIOT_ALLOW_COMMANDS=yes."
    if kind in BRIDGED:
        return (
            f"Start a worker that serves queue {queue} with {BRIDGED[kind]} set and foliot[{kind}] installed."
        )
    return f"Start a worker that serves queue {queue} and has a handler for {kind}."
