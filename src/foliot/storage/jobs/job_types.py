"""Types of jobs as workers tell them, and those that a workspace has switched off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

DisabledTypes = frozenset[tuple[WorkspaceId, str]]  # types that are switched off, by workspace


@dataclass(frozen=True, slots=True)
class JobTypeDescription:
    """What a worker says of a type that it knows."""

    name: str
    description: str
    config_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DisabledType:
    type: str
    reason: str
    at: datetime


async def describe(tx: Tx, workspace_id: WorkspaceId | None, told: Sequence[JobTypeDescription]) -> None:
    await tx.execute(
        sql.job_types.describe,
        {
            "workspace_id": workspace_id,
            "names": [each.name for each in told],
            "descriptions": [each.description for each in told],
            "schemas": [Jsonb(dict(each.config_schema)) for each in told],
            "now": tx.now,
        },
    )


async def forget_beyond(tx: Tx, workspace_id: WorkspaceId, most: int) -> None:
    """Of what this workspace's own workers have told, the newest are kept."""
    await tx.execute(sql.job_types.forget_beyond, {"workspace_id": workspace_id, "most": most})


async def list_known(tx: Tx, name: str | None = None) -> dict[str, JobTypeDescription]:
    """Those that the workspace of the transaction may use; only the one called `name`, where one is named."""
    found: dict[str, JobTypeDescription] = {}
    for row in await tx.fetch(sql.job_types.known, {"name": name}):
        found.setdefault(
            row["name"], JobTypeDescription(row["name"], row["description"], row["config_schema"])
        )
    return found


async def list_disabled(tx: Tx) -> dict[str, DisabledType]:
    rows = await tx.fetch(sql.job_types.off, {})
    return {row["type"]: DisabledType(row["type"], row["reason"], row["at"]) for row in rows}


async def disabled_in(tx: Tx, workspaces: Iterable[WorkspaceId]) -> DisabledTypes:
    """What is switched off in these."""
    rows = await tx.fetch(sql.job_types.off_among, {"workspace_ids": list(workspaces)})
    return frozenset((row["workspace_id"], row["type"]) for row in rows)


async def list_released_runs(tx: Tx, limit: int) -> dict[RunId, JobId]:
    """Runs that nothing holds any more, oldest first: in the workspace of the transaction, or in all."""
    rows = await tx.fetch(sql.job_types.to_let_go, {"workspace_id": tx.workspace_id, "limit": limit})
    return {row["run_id"]: row["job_id"] for row in rows}


async def disable(tx: Tx, name: str, reason: str) -> None:
    params = {"workspace_id": tx.workspace_id, "type": name, "reason": reason, "now": tx.now}
    await tx.execute(sql.job_types.switch_off, params)


async def enable(tx: Tx, name: str) -> None:
    await tx.execute(sql.job_types.switch_on, {"type": name})
