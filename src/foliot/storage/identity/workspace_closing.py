"""What it takes to empty a workspace, some jobs at a time."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.ids import JobId
from foliot.storage.queries import sql
from foliot.storage.queue.leases import LeaseKey
from foliot.storage.tx import Tx


async def open_jobs(tx: Tx, limit: int) -> list[JobId]:
    """Jobs of the transaction's workspace that are not archived."""
    rows = await tx.fetch(sql.closing.open_jobs, {"workspace_id": tx.workspace_id, "limit": limit})
    return [row["id"] for row in rows]


async def halt(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Nothing of theirs is due any more. Needs the locks of their timers."""
    await tx.execute(sql.closing.halt, {"job_ids": list(job_ids)})


async def leased(tx: Tx, job_ids: Sequence[JobId]) -> list[LeaseKey]:
    params = {"workspace_id": tx.workspace_id, "job_ids": list(job_ids)}
    rows = await tx.fetch(sql.closing.leased, params)
    return [LeaseKey(row["run_id"], row["fence"], row["worker_id"]) for row in rows]
