"""Workspaces as rows, and how much room there is in one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.queue.leases import LeaseKey
from foliot.storage.runs.run_history import first_id_at
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class Workspace:
    id: WorkspaceId
    slug: str
    name: str
    default_timezone: str
    settings: Mapping[str, Any]
    created_at: datetime
    archived_at: datetime | None

    @property
    def quotas(self) -> Mapping[str, Any]:
        """What it has of its own, where that differs from the installation's."""
        own: Mapping[str, Any] = self.settings.get("quotas", {})
        return own


@dataclass(frozen=True, slots=True)
class WorkspaceUsage:
    is_archived: bool
    jobs: int  # not archived; counted to just past the limit


async def load_slugs(tx: Tx, workspace_ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    return dict(await tx.fetch_tuples(sql.workspaces.slugs, {"ids": list(workspace_ids)}))


async def insert_missing(tx: Tx, workspace_id: WorkspaceId, slug: str, name: str) -> None:
    """Make it unless the slug is there already."""
    params = {"id": workspace_id, "slug": slug, "name": name, "now": tx.now}
    await tx.execute(sql.workspaces.insert_missing, params)


async def by_slug(tx: Tx, slug: str) -> Workspace | None:
    row = await tx.fetch_one(sql.workspaces.by_slug, {"slug": slug})
    return Workspace(**row) if row else None


async def by_id(tx: Tx, workspace_id: WorkspaceId) -> Workspace | None:
    row = await tx.fetch_one(sql.workspaces.by_id, {"id": workspace_id})
    return Workspace(**row) if row else None


async def insert(tx: Tx, made: Workspace) -> bool:
    """Whether the slug was free."""
    params = {
        "id": made.id,
        "slug": made.slug,
        "name": made.name,
        "default_timezone": made.default_timezone,
        "settings": Jsonb(dict(made.settings)),
        "now": made.created_at,
    }
    return await tx.execute(sql.workspaces.insert, params) > 0


async def page(tx: Tx, after: str | None, limit: int, *, is_archived: bool | None) -> list[Workspace]:
    """In the order of their slugs."""
    params = {"after": after, "limit": limit, "is_archived": is_archived}
    return [Workspace(**row) for row in await tx.fetch(sql.workspaces.page, params)]


async def lock(tx: Tx, workspace_id: WorkspaceId) -> Workspace | None:
    row = await tx.fetch_one(sql.workspaces.lock, {"id": workspace_id})
    return Workspace(**row) if row else None


async def change(
    tx: Tx, workspace_id: WorkspaceId, name: str, default_timezone: str, settings: Mapping[str, Any]
) -> None:
    params = {
        "id": workspace_id,
        "name": name,
        "default_timezone": default_timezone,
        "settings": Jsonb(dict(settings)),
    }
    await tx.execute(sql.workspaces.change, params)


async def archive(tx: Tx, workspace_id: WorkspaceId) -> None:
    await tx.execute(sql.workspaces.archive, {"id": workspace_id, "now": tx.now})


async def find_unfinished(tx: Tx) -> WorkspaceId | None:
    """One that is archived and still has jobs that are not."""
    row = await tx.fetch_one(sql.workspaces.unfinished)
    return None if row is None else row["id"]


async def load_usage(tx: Tx, most: int) -> WorkspaceUsage:
    """Of the transaction's own workspace; `most` is where counting ends."""
    row = await tx.fetch_one(sql.workspaces.room, {"id": tx.workspace_id, "most": most})
    return (
        WorkspaceUsage(True, 0)
        if row is None
        else WorkspaceUsage(row["archived_at"] is not None, row["jobs"])
    )


async def count_jobs_created(tx: Tx, start: datetime, end: datetime, most: int) -> int:
    """How many jobs were made then, archived ones too; `most` is where counting ends."""
    params = {
        "id": tx.workspace_id,
        "first": first_id_at(start),
        "past": first_id_at(end),
        "most": most,
    }
    row = await tx.fetch_one(sql.workspaces.made_between, params)
    return int(row["jobs"]) if row else 0


async def lock_quota(tx: Tx) -> None:
    """Until the end of the transaction nobody else who asks for room gets an answer."""
    await tx.execute(sql.workspaces.lock_room, {"id": tx.workspace_id})


async def list_open_jobs(tx: Tx, limit: int) -> list[JobId]:
    """Jobs of the transaction's workspace that are not archived."""
    rows = await tx.fetch(sql.workspaces.open_jobs, {"workspace_id": tx.workspace_id, "limit": limit})
    return [row["id"] for row in rows]


async def stop_timers(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Nothing of theirs is due any more. Needs the locks of their timers."""
    await tx.execute(sql.workspaces.halt, {"job_ids": list(job_ids)})


async def list_leases(tx: Tx, job_ids: Sequence[JobId]) -> list[LeaseKey]:
    params = {"workspace_id": tx.workspace_id, "job_ids": list(job_ids)}
    rows = await tx.fetch(sql.workspaces.leased, params)
    return [LeaseKey(row["run_id"], row["fence"], row["worker_id"]) for row in rows]
