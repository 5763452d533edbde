"""Jobs as people look through them: a page of many, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.domain.ids import JobId, PrincipalId
from foliot.domain.lifecycle import JobStatus
from foliot.storage.jobs import StoredJob, stored
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Empty means all but the archived."""

    statuses: tuple[JobStatus, ...] = ()
    type: str | None = None
    queue: str | None = None
    tag: str | None = None
    owner_id: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[StoredJob, ...]
    next: JobId | None  # the next page begins after this one


async def jobs(tx: Tx, wanted: JobFilter, after: JobId | None, limit: int) -> JobPage:
    """Newest first: ids begin with the instant of creation."""
    rows = await tx.fetch(
        sql.listing.jobs,
        {
            "workspace_id": tx.workspace_id,
            "before": after,
            "statuses": [status.value for status in wanted.statuses] or None,
            "type": wanted.type,
            "queue": wanted.queue,
            "tag": wanted.tag,
            "owner_id": wanted.owner_id,
            "limit": limit + 1,
        },
    )
    items = tuple(stored(row) for row in rows[:limit])
    return JobPage(items, items[-1].id if len(rows) > limit else None)
