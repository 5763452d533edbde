"""Jobs as people look at them: one, or a page of many, each with where it stands and what it has done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foliot.domain.definition import Definition
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.storage.definitions import definition_of
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class JobRecord:
    id: JobId
    workspace_id: WorkspaceId
    definition: Definition
    status: JobStatus
    status_reason: str | None
    status_by: str | None
    status_at: datetime
    paused_until: datetime | None
    revision: int
    schedule_rev: int
    created_by: str
    created_at: datetime
    updated_at: datetime
    cursor_at: datetime
    next_at: datetime | None
    skip_next: str | None
    live: int
    waiting: int
    runs_created: int
    fire_count: int
    run_count: int
    success_count: int
    failure_count: int
    skip_count: int
    failures_in_a_row: int
    last_fire_at: datetime | None
    last_run_at: datetime | None
    last_run_id: RunId | None
    last_run_status: RunStatus | None
    last_error: str | None


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
    items: tuple[JobRecord, ...]
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
    items = tuple(_record(row) for row in rows[:limit])
    return JobPage(items, items[-1].id if len(rows) > limit else None)


async def job(tx: Tx, job_id: JobId, owner_id: PrincipalId | None = None) -> JobRecord | None:
    row = await tx.fetch_one(sql.listing.job, {"id": job_id, "owner_id": owner_id})
    return None if row is None else _record(row)


def _record(row: Row) -> JobRecord:
    same: dict[str, Any] = {name: row[name] for name in JobRecord.__slots__}
    last = row["last_run_status"]
    return JobRecord(
        **{
            **same,
            "definition": definition_of(row["definition"]),
            "status": JobStatus(row["status"]),
            "last_run_status": None if last is None else RunStatus(last),
        }
    )
