"""Workspaces: their rows, the usage that quotas limit, and closing one a batch of jobs at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, PrincipalId, WorkspaceId
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
        """Return the quotas that differ from the installation's."""
        own: Mapping[str, Any] = self.settings.get("quotas", {})
        return own


@dataclass(frozen=True, slots=True)
class WorkspaceUsage:
    is_archived: bool
    jobs: int  # not archived; counted to just past the limit


async def load_slugs(tx: Tx, workspace_ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    return dict(await tx.fetch_tuples(sql.workspaces.load_slugs, {"ids": list(workspace_ids)}))


async def insert_missing(
    tx: Tx, workspace_id: WorkspaceId, slug: str, name: str, timezone: str = "UTC"
) -> None:
    """Insert the workspace unless the slug exists."""
    params = {"id": workspace_id, "slug": slug, "name": name, "timezone": timezone}
    await tx.execute(sql.workspaces.insert_missing, params)


async def find_by_slug(tx: Tx, slug: str) -> Workspace | None:
    return await tx.fetch_one_as(Workspace, sql.workspaces.find_by_slug, {"slug": slug})


async def get(tx: Tx, workspace_id: WorkspaceId) -> Workspace | None:
    return await tx.fetch_one_as(Workspace, sql.workspaces.get, {"id": workspace_id})


async def insert(tx: Tx, made: Workspace) -> bool:
    """Insert the workspace and return whether the slug was free."""
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
    """List workspaces in the order of their slugs."""
    params = {"after": after, "limit": limit, "is_archived": is_archived}
    return await tx.fetch_as(Workspace, sql.workspaces.page, params)


async def lock(tx: Tx, workspace_id: WorkspaceId) -> Workspace | None:
    return await tx.fetch_one_as(Workspace, sql.workspaces.lock, {"id": workspace_id})


async def change(
    tx: Tx, workspace_id: WorkspaceId, name: str, default_timezone: str, settings: Mapping[str, Any]
) -> None:
    params = {
        "id": workspace_id,
        "name": name,
        "default_timezone": default_timezone,
        "settings": Jsonb(dict(settings)),
    }
    await tx.execute(sql.workspaces.update, params)


async def set_timezone(tx: Tx, workspace_id: WorkspaceId, timezone: str) -> None:
    await tx.execute(sql.workspaces.set_timezone, {"id": workspace_id, "timezone": timezone})


async def archive(tx: Tx, workspace_id: WorkspaceId) -> None:
    await tx.execute(sql.workspaces.archive, {"id": workspace_id})


async def find_unfinished(tx: Tx) -> WorkspaceId | None:
    """Find an archived workspace with jobs that are not archived."""
    return await tx.fetch_one_as(WorkspaceId, sql.workspaces.find_unfinished)


async def load_usage(tx: Tx, most: int) -> WorkspaceUsage:
    """Count the jobs of the transaction's workspace, up to `most`."""
    params = {"most": most}
    return await tx.fetch_one_as(WorkspaceUsage, sql.workspaces.load_usage, params) or WorkspaceUsage(True, 0)


async def count_jobs_created(tx: Tx, start: datetime, end: datetime, most: int) -> int:
    """Count the jobs created in that time, archived ones included, up to `most`."""
    params = {"first": first_id_at(start), "past": first_id_at(end), "most": most}
    return await tx.fetch_value(int, sql.workspaces.count_jobs_created, params)


async def count_owned_jobs(tx: Tx, owner_id: PrincipalId, most: int) -> int:
    """Count the jobs of one owner that are not archived, up to `most`."""
    return await tx.fetch_value(int, sql.workspaces.count_owned_jobs, {"owner_id": owner_id, "most": most})


async def count_archived_jobs(tx: Tx, most: int) -> int:
    """Count the archived jobs, up to `most`."""
    return await tx.fetch_value(int, sql.workspaces.count_archived_jobs, {"most": most})


async def lock_quota(tx: Tx) -> None:
    """Serialise quota checks of the workspace until the transaction ends."""
    await tx.execute(sql.workspaces.lock_quota)


async def list_open_jobs(tx: Tx, limit: int) -> list[JobId]:
    """List the jobs of the transaction's workspace that are not archived."""
    return await tx.fetch_as(JobId, sql.workspaces.list_open_jobs, {"limit": limit})


async def stop_timers(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Make the timers of these jobs due never. The caller has their locks."""
    await tx.execute(sql.workspaces.stop_timers, {"job_ids": list(job_ids)})


async def list_leases(tx: Tx, job_ids: Sequence[JobId]) -> list[LeaseKey]:
    return await tx.fetch_as(LeaseKey, sql.workspaces.list_leases, {"job_ids": list(job_ids)})
