"""Jobs that programs insert with SQL, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.domain.ids import JobId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class InboxEntry:
    job: dict[str, Any]
    created_by: str  # the login of the database


async def list_unprocessed(tx: Tx, limit: int) -> list[tuple[WorkspaceId, UUID]]:
    return await tx.fetch_pairs(WorkspaceId, UUID, sql.job_inbox.list_unprocessed, {"limit": limit})


async def lock(tx: Tx, entry_id: UUID) -> InboxEntry | None:
    """Lock an entry that has no result. None: it has one, or another node is at it."""
    return await tx.fetch_one_as(InboxEntry, sql.job_inbox.lock, {"id": entry_id})


async def store_result(
    tx: Tx, entry_id: UUID, *, job_id: JobId | None = None, error: str | None = None
) -> None:
    await tx.execute(sql.job_inbox.store_result, {"id": entry_id, "job_id": job_id, "error": error})


async def prune(tx: Tx, before: datetime) -> None:
    await tx.execute(sql.job_inbox.prune, {"before": before})
