"""Runs that may not start yet, and the way from there to `ready`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.ids import JobId, RunId
from foliot.domain.run import Trigger, WaitsFor
from foliot.domain.run_end import Promotion
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class WaitingRun:
    run_id: RunId
    job_id: JobId
    available_at: datetime
    expires_at: datetime | None
    trigger: Trigger = Trigger.SCHEDULE
    waits_for: WaitsFor = WaitsFor.TURN


async def next_in_line(tx: Tx, promotions: Mapping[JobId, Promotion]) -> list[WaitingRun]:
    if not promotions:
        return []
    by_hand = [promotion is Promotion.MANUAL for promotion in promotions.values()]
    rows = await tx.fetch(sql.waiting.next_in_line, {"job_ids": list(promotions), "by_hand": by_hand})
    return [_waiting(row) for row in rows]


async def in_line(tx: Tx, job_id: JobId) -> list[WaitingRun]:
    """All that wait for their turn, oldest first."""
    return [_waiting(row) for row in await tx.fetch(sql.standing.in_line, {"job_id": job_id})]


async def at_the_gate(tx: Tx, job_ids: Sequence[JobId]) -> list[WaitingRun]:
    rows = await tx.fetch(sql.waiting.at_the_gate, {"job_ids": list(job_ids)})
    return [_waiting(row) for row in rows]


async def still(tx: Tx, run_ids: Sequence[RunId], waits_for: WaitsFor) -> list[WaitingRun]:
    """Those of `run_ids` that wait for this, in their order. Under their timers' locks it stays so."""
    params = {"run_ids": list(run_ids), "waits_for": waits_for.value}
    return [_waiting(row) for row in await tx.fetch(sql.waiting.still, params)]


async def whose_window_opened(tx: Tx, limit: int) -> dict[RunId, JobId]:
    rows = await tx.fetch(sql.waiting.waiting_until, {"now": tx.now, "limit": limit})
    return {row["run_id"]: row["job_id"] for row in rows}


async def at_open_gates(tx: Tx, limit: int) -> dict[RunId, JobId]:
    rows = await tx.fetch(sql.waiting.at_open_gates, {"limit": limit})
    return {row["run_id"]: row["job_id"] for row in rows}


async def promote(tx: Tx, runs: Sequence[WaitingRun]) -> None:
    """To `ready`, startable from their `available_at` on."""
    if not runs:
        return
    await tx.execute(
        sql.waiting.promote,
        {
            "run_ids": [run.run_id for run in runs],
            "available_at": [run.available_at for run in runs],
            "expires_at": [run.expires_at for run in runs],
        },
    )


async def hold(tx: Tx, run_ids: Sequence[RunId], waits_for: WaitsFor) -> None:
    if run_ids:
        await tx.execute(sql.waiting.hold, {"run_ids": list(run_ids), "waits_for": waits_for.value})


async def hold_until(tx: Tx, run_id: RunId, waits_for: WaitsFor, until: datetime | None) -> None:
    params = {"run_id": run_id, "waits_for": waits_for.value, "until": until}
    await tx.execute(sql.waiting.hold_until, params)


async def put_off(tx: Tx, run_id: RunId, at: datetime, until: datetime | None) -> None:
    """It waits for its window or calendar to open, at `at`."""
    await tx.execute(sql.waiting.put_off, {"run_id": run_id, "at": at, "until": until})


async def hold_ready(tx: Tx, run_ids: Sequence[RunId], waits_for: WaitsFor) -> int:
    """Out of `ready` again; answers with how many no worker had taken meanwhile."""
    if not run_ids:
        return 0
    return await tx.execute(sql.waiting.hold_ready, {"run_ids": list(run_ids), "waits_for": waits_for.value})


def _waiting(row: Row) -> WaitingRun:
    return WaitingRun(
        row["run_id"],
        row["job_id"],
        row["available_at"],
        row["expires_at"],
        Trigger(row["trigger"]),
        WaitsFor(row["waits_for"]),
    )
