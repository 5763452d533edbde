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
class RunFacts:
    """What verbs on a run need to know of it. `status` is None while it is open."""

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


async def find(tx: Tx, run_id: RunId) -> RunFacts | None:
    row = await tx.fetch_one(sql.run_records.find, {"id": run_id})
    if row is None:
        return None
    return RunFacts(
        row["id"],
        row["workspace_id"],
        row["job_id"],
        None if row["status"] is None else RunStatus(row["status"]),
        Trigger(row["trigger"]),
        row["planned_for"],
        row["planned_key"],
        row["fold"],
        row["schedule_rev"],
        row["planned_until"],
        row["input"],
    )


async def known(tx: Tx, run_ids: Collection[RunId]) -> frozenset[RunId]:
    """Those that there are."""
    rows = await tx.fetch(sql.run_records.known, {"run_ids": list(run_ids)})
    return frozenset(row["id"] for row in rows)


async def recorded_between(tx: Tx, job_id: JobId, start: datetime, end: datetime) -> list[RecordedTime]:
    """The planned times from `start` up to `end` that have a record, whatever made it."""
    rows = await tx.fetch(sql.run_records.recorded_between, {"job_id": job_id, "start": start, "end": end})
    return [
        RecordedTime(
            row["planned_for"],
            row["planned_until"],
            row["planned_key"],
            row["fold"],
            row["schedule_rev"],
            Trigger(row["trigger"]),
            row["status"] == RunStatus.SKIPPED,
        )
        for row in rows
    ]


async def set_note(tx: Tx, run_id: RunId, note: str | None) -> None:
    """Of a run that has not ended; nothing takes nothing away."""
    if note is not None:
        await tx.execute(sql.run_records.set_note, {"id": run_id, "note": note})
