"""Job types as workers describe them, and the types that a workspace has disabled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

DisabledTypes = frozenset[tuple[WorkspaceId, str]]  # by workspace


@dataclass(frozen=True, slots=True)
class JobTypeDescription:
    """A worker's description of a type that it runs."""

    name: str
    description: str
    config_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DisabledType:
    type: str
    reason: str
    at: datetime


async def describe(tx: Tx, workspace_id: WorkspaceId | None, types: Sequence[JobTypeDescription]) -> None:
    await tx.execute(
        sql.job_types.describe,
        {
            "workspace_id": workspace_id,
            "names": [each.name for each in types],
            "descriptions": [each.description for each in types],
            "schemas": [Jsonb(dict(each.config_schema)) for each in types],
        },
    )


async def forget_beyond(tx: Tx, workspace_id: WorkspaceId, most: int) -> None:
    """Delete all but the `most` newest descriptions of the workspace's own workers."""
    await tx.execute(sql.job_types.forget_beyond, {"workspace_id": workspace_id, "most": most})


async def list_known(tx: Tx, name: str | None = None) -> dict[str, JobTypeDescription]:
    """Return the types that the transaction's workspace may use, or the one called `name`."""
    found: dict[str, JobTypeDescription] = {}
    for each in await tx.fetch_as(JobTypeDescription, sql.job_types.list_known, {"name": name}):
        found.setdefault(each.name, each)
    return found


async def list_disabled(tx: Tx) -> dict[str, DisabledType]:
    return {each.type: each for each in await tx.fetch_as(DisabledType, sql.job_types.list_disabled)}


async def disabled_in(tx: Tx, workspaces: Iterable[WorkspaceId]) -> DisabledTypes:
    """Return the disabled types of these workspaces."""
    params = {"workspace_ids": list(workspaces)}
    return frozenset(await tx.fetch_pairs(WorkspaceId, str, sql.job_types.list_disabled_in, params))


async def list_released_runs(tx: Tx, limit: int) -> dict[RunId, JobId]:
    """List runs that wait for a type that is enabled again, oldest first; without a workspace, of all."""
    params = {"workspace_id": tx.workspace_id, "limit": limit}
    return dict(await tx.fetch_pairs(RunId, JobId, sql.job_types.list_released_runs, params))


async def disable(tx: Tx, name: str, reason: str) -> None:
    await tx.execute(sql.job_types.disable, {"type": name, "reason": reason})


async def enable(tx: Tx, name: str) -> None:
    await tx.execute(sql.job_types.enable, {"type": name})
