"""Report: what workers say of their attempts -> what it means, in one transaction. A lost lease enters by the same door."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foliot.domain.ids import JobId, RunId, WorkerId
from foliot.domain.lifecycle import advance
from foliot.domain.outcomes import Outcome
from foliot.domain.settlement import Settlement, settle, then
from foliot.domain.verdicts import JobFacts
from foliot.storage import jobs, leases, timers
from foliot.storage.jobs import Move
from foliot.storage.leases import Held
from foliot.storage.timers import TimerRow, Told
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to one attempt, under the fence it was leased with."""

    run_id: RunId
    job_id: JobId
    fence: int
    worker_id: WorkerId
    outcome: Outcome
    output: Any = None


async def report(database: Database, reports: Sequence[Report]) -> frozenset[RunId]:
    """Settle a batch; answers with the runs that were accepted. The others' leases belong to somebody else now."""
    if not reports:
        return frozenset()
    async with database.tx(Role.ENGINE) as tx:
        accepted = await settle_reports(tx, reports)
    for refused in (each for each in reports if each.run_id not in accepted):
        log.warning("report.refused", extra={"run": str(refused.run_id), "fence": refused.fence})
    return accepted


async def settle_reports(tx: Tx, reports: Sequence[Report]) -> frozenset[RunId]:
    rows = await timers.lock(tx, sorted({each.job_id for each in reports}))
    held = await leases.lock(tx, [Held(each.run_id, each.fence, each.worker_id) for each in reports])
    facts = {job_id: _facts(row) for job_id, row in rows.items()}
    told: dict[JobId, Told] = {}
    settled: list[tuple[Settlement, Any]] = []
    for each in reports:
        lease = held.get(each.run_id)
        if lease is None:
            continue
        job = facts[lease.job_id]
        settlement = settle(lease.facts, each.outcome, job, tx.now, tx.chance.random())
        facts[lease.job_id] = then(lease.facts, job, settlement)
        settled.append((settlement, each.output))
        if settlement.is_final:
            mine = told.setdefault(lease.job_id, Told())
            mine.live -= 1
            mine.add(settlement)
    if settled:
        await leases.settle(tx, settled)
    if told:
        await timers.settle(tx, told)
    await jobs.move(tx, list(_moves(settled, held, rows)), "engine")
    return frozenset(settlement.run_id for settlement, _ in settled)


def _facts(row: TimerRow) -> JobFacts:
    return JobFacts(
        job=row.rules.job(row.job_id, row.workspace_id, row.schedule_rev),
        status=row.status,
        timer=row.timer,
        live=row.live,
        waiting=row.waiting,
        failures_in_a_row=row.failures_in_a_row,
    )


def _moves(
    settled: Iterable[tuple[Settlement, Any]], held: dict[RunId, leases.Lease], rows: dict[JobId, TimerRow]
) -> Iterable[Move]:
    status = {job_id: row.status for job_id, row in rows.items()}
    for settlement, _ in settled:
        if settlement.event is not None:
            job_id = held[settlement.run_id].job_id
            status[job_id] = advance(status[job_id], settlement.event)
            yield Move(
                job_id, status[job_id], next((notice.text for notice in settlement.notices[-1:]), None)
            )
