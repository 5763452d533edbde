"""What should have happened and did not: timers that nobody fired, and runs that no worker can take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.ids import WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class UnservedQueue:
    """Runs that wait since `since`, because no live worker serves their queue and type."""

    queue: str
    type: str
    runs: int
    since: datetime

    @property
    def subject(self) -> str:
        return f"queue:{self.queue}/{self.type}"


async def list_overdue_workspaces(tx: Tx, by: datetime, limit: int) -> list[WorkspaceId]:
    """List workspaces with something overdue, or with a queue that was. Needs an engine transaction."""
    params = {"by": by, "now": tx.now, "limit": limit}
    found = await tx.fetch_as(WorkspaceId, sql.missed_runs.list_overdue_workspaces, params)
    known = await tx.fetch_as(WorkspaceId, sql.missed_runs.list_workspaces_with_open_queues, {"limit": limit})
    return list(dict.fromkeys([*found, *known]))


async def count_overdue(tx: Tx, by: datetime, limit: int) -> int:
    """Count overdue timers of all workspaces, up to the limit."""
    return await tx.fetch_value(int, sql.missed_runs.count_overdue, {"by": by, "limit": limit})


async def insert_missed(tx: Tx, by: datetime, limit: int) -> int:
    """Write a notice for each overdue job of the workspace that has no open incident; return how many."""
    params = {"workspace_id": tx.workspace_id, "by": by, "now": tx.now, "limit": limit}
    written = await tx.execute(sql.missed_runs.insert_missed, params)
    await tx.execute(sql.missed_runs.mark_overdue, params)
    return written


async def list_unserved(tx: Tx, by: datetime, limit: int) -> list[UnservedQueue]:
    params = {"workspace_id": tx.workspace_id, "by": by, "now": tx.now, "limit": limit}
    return await tx.fetch_as(UnservedQueue, sql.missed_runs.list_unserved, params)


async def list_open_queues(tx: Tx) -> set[str]:
    """Return the subjects of open incidents about queues, and of those that wait for the notifier."""
    params = {"workspace_id": tx.workspace_id}
    found = await tx.fetch_as(str, sql.missed_runs.list_open_queues, params)
    waiting = await tx.fetch_as(str, sql.missed_runs.list_waiting_queues, params)
    return {*found, *waiting}
