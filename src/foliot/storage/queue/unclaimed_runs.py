"""Find runs that wait, that expire, or that no worker has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.run import Target, Trigger, WaitsFor, target_of
from foliot.domain.run_end import Promotion
from foliot.storage.queries import sql
from foliot.storage.timers.timers import TimerRow, queue_address
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class WaitingRun:
    run_id: RunId
    job_id: JobId
    available_at: datetime
    expires_at: datetime | None
    trigger: Trigger = Trigger.SCHEDULE
    waits_for: WaitsFor = WaitsFor.TURN


@dataclass(frozen=True, slots=True)
class ExpiredRun:
    """A run that no worker claimed before it expired."""

    run_id: RunId
    job_id: JobId
    expires_at: datetime
    trigger: Trigger
    has_begun: bool  # this would be a further attempt
    waits_for: WaitsFor | None
    workspace_id: WorkspaceId
    target: Target | None  # of a run in `ready`


async def next_in_turn(tx: Tx, promotions: Mapping[JobId, Promotion]) -> list[WaitingRun]:
    if not promotions:
        return []
    manual_only = [promotion is Promotion.MANUAL for promotion in promotions.values()]
    params = {"job_ids": list(promotions), "manual_only": manual_only}
    return [_waiting(row) for row in await tx.fetch(sql.unclaimed_runs.next_in_turn, params)]


async def in_turn(tx: Tx, job_id: JobId) -> list[WaitingRun]:
    """Return all runs of a job that wait for their turn, oldest first."""
    return [_waiting(row) for row in await tx.fetch(sql.unclaimed_runs.in_turn, {"job_id": job_id})]


async def at_gate(tx: Tx, job_id: JobId) -> list[WaitingRun]:
    return [_waiting(row) for row in await tx.fetch(sql.unclaimed_runs.at_gate, {"job_ids": [job_id]})]


async def still_waiting(tx: Tx, run_ids: Sequence[RunId], waits_for: WaitsFor) -> list[WaitingRun]:
    """Return those of `run_ids` that wait for this, oldest first. Under the locks of their timers it stays so."""
    params = {"run_ids": list(run_ids), "waits_for": waits_for.value}
    return [_waiting(row) for row in await tx.fetch(sql.unclaimed_runs.still_waiting, params)]


async def with_open_window(tx: Tx, limit: int) -> dict[RunId, JobId]:
    rows = await tx.fetch(sql.unclaimed_runs.with_open_window, {"limit": limit})
    return {row["run_id"]: row["job_id"] for row in rows}


async def at_settled_gates(tx: Tx, limit: int) -> dict[RunId, JobId]:
    """Return runs at gates whose upstreams have all ended."""
    rows = await tx.fetch(sql.unclaimed_runs.at_settled_gates, {"limit": limit})
    return {row["run_id"]: row["job_id"] for row in rows}


async def unclaimed_of_job(tx: Tx, row: TimerRow, trigger: Trigger | None = None) -> list[RunId]:
    """Return the runs of a job that no worker has; with `trigger`, those that it made."""
    if row.load.is_idle:
        return []
    rows = await tx.fetch(sql.unclaimed_runs.unclaimed_of_job, queue_address(row))
    return [found["run_id"] for found in rows if trigger is None or found["trigger"] == trigger.value]


async def leased_of_job(tx: Tx, job_id: JobId) -> list[RunId]:
    """Return the runs of a job that a worker has."""
    return [found["run_id"] for found in await tx.fetch(sql.unclaimed_runs.leased_of_job, {"job_id": job_id})]


async def expired(tx: Tx, limit: int) -> list[tuple[RunId, JobId]]:
    rows = await tx.fetch(sql.unclaimed_runs.expired, {"limit": limit})
    return [(row["run_id"], row["job_id"]) for row in rows]


async def still_expired(tx: Tx, run_ids: Sequence[RunId]) -> list[ExpiredRun]:
    """Return those of `run_ids` that have expired and that no worker has. Needs the locks of their timers."""
    rows = await tx.fetch(sql.unclaimed_runs.still_expired, {"run_ids": list(run_ids)})
    return [
        ExpiredRun(
            row["run_id"],
            row["job_id"],
            row["expires_at"],
            Trigger(row["trigger"]),
            row["attempts"] > 0,
            None if row["waits_for"] is None else WaitsFor(row["waits_for"]),
            row["workspace_id"],
            None if row["target"] is None else target_of(row["target"]),
        )
        for row in rows
    ]


def _waiting(row: Row) -> WaitingRun:
    return WaitingRun(
        row["run_id"],
        row["job_id"],
        row["available_at"],
        row["expires_at"],
        Trigger(row["trigger"]),
        WaitsFor(row["waits_for"]),
    )
