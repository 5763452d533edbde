"""Read single records of the run history, for verbs on runs and for backfills."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import Trigger
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The facts of a run that verbs on it need. `status` is None while it is open."""

    id: RunId
    workspace_id: WorkspaceId
    job_id: JobId
    status: RunStatus | None
    trigger: Trigger
    planned_for: datetime
    planned_local: datetime
    fold: int
    schedule_rev: int
    planned_until: datetime | None
    input: Any


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """A planned time, or a gap of them, that has its record."""

    planned_for: datetime
    planned_until: datetime | None
    planned_local: datetime
    fold: int
    schedule_rev: int
    trigger: Trigger
    is_skipped: bool


async def find(tx: Tx, run_id: RunId) -> StoredRun | None:
    return await tx.fetch_one_as(StoredRun, sql.run_records.find, {"id": run_id})


async def list_known(tx: Tx, run_ids: Collection[RunId]) -> frozenset[RunId]:
    """Return those of these runs that exist."""
    return frozenset(await tx.fetch_as(RunId, sql.run_records.list_known, {"run_ids": list(run_ids)}))


async def list_workspaces(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, WorkspaceId]:
    """Return the workspaces of those runs that exist."""
    found = await tx.fetch_pairs(
        RunId, WorkspaceId, sql.run_records.list_workspaces, {"run_ids": list(run_ids)}
    )
    return dict(found)


async def recorded_between(tx: Tx, job_id: JobId, start: datetime, end: datetime) -> list[RecordedTime]:
    """List the planned times from `start` up to `end` that have a record, whatever made it."""
    params = {"job_id": job_id, "start": start, "end": end}
    return await tx.fetch_as(RecordedTime, sql.run_records.list_recorded, params)


async def set_note(tx: Tx, run_id: RunId, note: str | None) -> None:
    """Set the note of a run that has not ended; None leaves it unchanged."""
    if note is not None:
        await tx.execute(sql.run_records.set_note, {"id": run_id, "note": note})
