"""Find work for a claim, and load what there is to do in claimed runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.run import Trigger
from foliot.storage.arrays import uuids
from foliot.storage.queries import sql
from foliot.storage.queue.limits import Permit
from foliot.storage.queue.run_queue import Claimed, ClaimOrder
from foliot.storage.tx import Tx

FIRST = UUID(int=0)  # before every id


class ServedWorkspace(NamedTuple):
    """A workspace that has work."""

    workspace_id: WorkspaceId
    is_limited: bool  # it has a limit or a disabled type
    is_frozen: bool = False  # a freeze has just begun: nothing starts until the sweeper has held its runs


class ClaimedJob(NamedTuple):
    name: str
    config: dict[str, Any] | None
    payload: dict[str, Any] | None


async def workspaces_with_work(
    tx: Tx, worker_id: WorkerId, queue: str, after: UUID, limit: int
) -> list[ServedWorkspace]:
    params = {"worker_id": worker_id, "queue": queue, "after": after, "limit": limit, "now": tx.now}
    return [ServedWorkspace(*row) for row in await tx.fetch_tuples(sql.claims.workspaces_with_work, params)]


async def bound(tx: Tx, worker_id: WorkerId, workspace_id: WorkspaceId) -> ServedWorkspace | None:
    """Return the workspace of a worker that serves one alone, unless it may not claim there now."""
    params = {"worker_id": worker_id, "workspace_id": workspace_id, "now": tx.now}
    rows = await tx.fetch_tuples(sql.claims.bound, params)
    return ServedWorkspace(*rows[0]) if rows else None


async def queues_of_workspace(tx: Tx, workspace_id: WorkspaceId, limit: int) -> list[str]:
    params = {"workspace_id": workspace_id, "limit": limit}
    return [queue for (queue,) in await tx.fetch_tuples(sql.claims.queues_of_workspace, params)]


async def queues_with_work(tx: Tx, after: str, limit: int) -> list[str]:
    params = {"after": after, "limit": limit}
    return [queue for (queue,) in await tx.fetch_tuples(sql.claims.queues_with_work, params)]


async def lock_ready(tx: Tx, order: ClaimOrder, workspaces: Sequence[WorkspaceId]) -> dict[RunId, Permit]:
    """Lock ready runs and return them with the permits they need, in the order in which they should start."""
    params = {
        "queue": order.queue,
        "types": list(order.types),
        "workspace_ids": list(workspaces),
        "share": order.share,
        "now": tx.now,
    }
    rows = await tx.fetch(sql.claims.lock_ready, params)
    return {row["run_id"]: Permit(row["workspace_id"], row["concurrency_key"], row["is_off"]) for row in rows}


async def load(tx: Tx, claimed: Sequence[Claimed]) -> tuple[dict[JobId, ClaimedJob], dict[RunId, Any]]:
    """Load the jobs of claimed runs and the inputs they were given. Scheduled runs have none, so most claims need one query."""
    params = {"job_ids": uuids([each.job_id for each in claimed])}
    rows = await tx.fetch_tuples(sql.claims.jobs_of_runs, params)
    jobs = {job_id: ClaimedJob(name, config, payload) for job_id, name, config, payload in rows}
    given = [each.run_id for each in claimed if each.trigger is not Trigger.SCHEDULE]
    if not given:
        return jobs, {}
    return jobs, dict(await tx.fetch_tuples(sql.claims.inputs_of_runs, {"run_ids": uuids(given)}))
