"""Defaults of the workspace and of the installation, and the workspaces whose jobs do not have the newest ones yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.defaults import DefaultValues, JobDefaults
from foliot.domain.definition import Definition
from foliot.domain.ids import JobId, WorkspaceId
from foliot.storage.codec import decode, encode
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class InheritingJob:
    id: JobId
    definition: Definition


@dataclass(frozen=True, slots=True)
class _Levels:
    workspace: dict[str, Any]
    installation: dict[str, Any]
    revision: int


@dataclass(frozen=True, slots=True)
class LoadedDefaults:
    values: JobDefaults
    revision: int  # of the workspace's defaults and those below


async def lock_shared(tx: Tx) -> None:
    """Keep the defaults of the workspace and of the installation as they are until the transaction ends."""
    await tx.execute(sql.defaults.lock_shared)


async def load_locked(tx: Tx, workspace_id: WorkspaceId) -> JobDefaults:
    """Load the defaults under a shared lock; a transaction that writes several jobs loads them once."""
    name = f"defaults:{workspace_id}"
    if name not in tx.locked:
        await lock_shared(tx)
        tx.locked[name] = (await load(tx, workspace_id)).values
    values: JobDefaults = tx.locked[name]
    return values


async def lock_workspace(tx: Tx, workspace_id: WorkspaceId) -> None:
    """Wait for transactions that write jobs with the current defaults of the workspace."""
    await tx.execute(sql.defaults.lock_workspace, {"workspace_id": workspace_id})


async def lock_installation(tx: Tx) -> None:
    """Wait for transactions that write jobs with the current defaults of the installation."""
    await tx.execute(sql.defaults.lock_installation)


async def load(tx: Tx, workspace_id: WorkspaceId) -> LoadedDefaults:
    found = await tx.fetch_value(_Levels, sql.defaults.load, {"workspace_id": workspace_id})
    levels = JobDefaults(decode(DefaultValues, found.workspace), decode(DefaultValues, found.installation))
    return LoadedDefaults(levels, found.revision)


async def load_installation(tx: Tx) -> DefaultValues:
    found: dict[str, Any] = await tx.fetch_value(dict, sql.defaults.load_installation)
    values: DefaultValues = decode(DefaultValues, found)
    return values


async def store_workspace(tx: Tx, workspace_id: WorkspaceId, values: DefaultValues) -> None:
    params = {"workspace_id": workspace_id, "defaults": Jsonb(encode(values))}
    await tx.execute(sql.defaults.store_workspace, params)


async def store_installation(tx: Tx, values: DefaultValues) -> None:
    """Store the defaults of the installation. The jobs of all workspaces get them later."""
    await tx.execute(sql.defaults.store_installation, {"defaults": Jsonb(encode(values))})
    await tx.execute(sql.defaults.mark_all)


async def next_unapplied(tx: Tx) -> WorkspaceId | None:
    """Find a workspace with jobs that may not have its newest defaults."""
    return await tx.fetch_one_as(WorkspaceId, sql.defaults.next_unapplied)


async def list_inheriting(tx: Tx, after: JobId, limit: int) -> list[InheritingJob]:
    """List jobs of the transaction's workspace that inherit a value, in the order of ids."""
    return await tx.fetch_as(InheritingJob, sql.defaults.list_inheriting, {"after": after, "limit": limit})


async def mark_applied(tx: Tx, workspace_id: WorkspaceId, revision: int) -> None:
    """Record that all jobs have the defaults of this revision."""
    await tx.execute(sql.defaults.mark_applied, {"workspace_id": workspace_id, "revision": revision})
