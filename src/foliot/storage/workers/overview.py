"""Workers and queues as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.ids import JobId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.domain.run import Target, target_of
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_READY = 100_000  # ready runs that the shares of workspaces are counted from


@dataclass(frozen=True, slots=True)
class WorkerOverview:
    id: WorkerId
    name: str
    queues: Sequence[str]
    types: Sequence[str]
    capacity: int
    running: int  # runs of the transaction's workspace
    started_at: datetime
    heartbeat_at: datetime
    version: str
    is_alive: bool
    is_draining: bool
    host: str | None  # of a worker of a host


@dataclass(frozen=True, slots=True)
class QueueOverview:
    name: str
    ready: int
    waiting: int
    running: int
    oldest: datetime | None  # earliest possible start among its ready runs
    workers: int


async def list_workers(
    tx: Tx, lost_since: datetime, limit: int, visible_owner: PrincipalId | None
) -> list[WorkerOverview]:
    params = {"lost_since": lost_since, "limit": limit, "owner_id": visible_owner}
    return await tx.fetch_as(WorkerOverview, sql.overview.list_workers, params)


@dataclass(frozen=True, slots=True)
class LeaseOverview:
    run_id: RunId
    job_id: JobId
    job: str
    attempt: int
    fence: int
    worker_id: WorkerId
    worker: str | None
    host: str | None
    leased_at: datetime
    expires_at: datetime | None  # None: its worker is gone
    deadline_at: datetime
    is_overdue: bool
    overdue_for: timedelta


async def list_leases(
    tx: Tx, limit: int, visible_owner: PrincipalId | None, *, overdue: bool
) -> list[LeaseOverview]:
    params = {"limit": limit, "owner_id": visible_owner}
    return await tx.fetch_as(LeaseOverview, sql.overview.list_leases, {**params, "overdue": overdue})


async def list_queues(tx: Tx, limit: int, visible_owner: PrincipalId | None) -> list[QueueOverview]:
    params = {"limit": limit, "owner_id": visible_owner}
    return await tx.fetch_as(QueueOverview, sql.overview.list_queues, params)


async def count_by_type(tx: Tx) -> dict[str, int]:
    """Count the live workers of each type."""
    return dict(await tx.fetch_pairs(str, int, sql.overview.count_by_type))


async def forget_lost(tx: Tx, before: datetime) -> int:
    return await tx.execute(sql.overview.prune_lost, {"before": before})


async def list_unserved(
    tx: Tx, by: datetime, limit: int
) -> list[tuple[str, str, int, datetime, Target | None]]:
    """List groups of ready runs that no live worker serves: queue, type, number, earliest start, target."""
    rows = await tx.fetch(sql.overview.unserved, {"by": by, "limit": limit})
    return [
        (row["queue"], row["type"], row["runs"], row["since"], row["target"] and target_of(row["target"]))
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class WorkspaceShare:
    """The runs of one workspace that are ready and running. `held`: runs that wait for a limit of their own."""

    id: WorkspaceId
    slug: str
    name: str
    ready: int
    oldest: datetime | None
    running: int
    held: int
    cap: int | None


async def list_shares(tx: Tx, limit: int) -> list[WorkspaceShare]:
    """List every workspace with open runs, the longest wait first. Needs an engine transaction."""
    return await tx.fetch_as(WorkspaceShare, sql.overview.list_shares, {"most": MOST_READY, "limit": limit})
