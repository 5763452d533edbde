"""Workspaces as rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.ids import WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class Workspace:
    id: WorkspaceId
    slug: str
    name: str
    default_timezone: str
    created_at: datetime
    archived_at: datetime | None


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
