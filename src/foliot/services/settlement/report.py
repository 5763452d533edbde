"""Report: what workers say of their attempts -> what it means, in one transaction. A lost lease enters by the same door."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from foliot.domain.ids import JobId, RunId, WorkerId
from foliot.domain.outcomes import Outcome, Succeeded
from foliot.domain.settlement.settle import settle_orphan
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.settlement.dependent_steps import wake_dependents
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.services.workers.limit_steps import give_back_permits
from foliot.storage.queue import leases
from foliot.storage.queue.leases import Lease, LeaseKey, SettledAttempt
from foliot.storage.queue.limits import Permit
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)


class Report(NamedTuple):
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
    if len(accepted) == len(reports):
        return accepted
    for refused in (each for each in reports if each.run_id not in accepted):
        log.warning("report.refused", extra={"run": str(refused.run_id), "fence": refused.fence})
    return accepted


async def settle_reports(tx: Tx, reports: Sequence[Report]) -> frozenset[RunId]:
    """Most reports are of a success after which nothing follows: they are settled by one statement. The others are decided one by one,
    on the timers as those have left them.
    """
    successes = {
        each.run_id: (each.run_id, each.fence, each.worker_id, each.output)
        for each in reports
        if isinstance(each.outcome, Succeeded)
    }
    accepted = await leases.settle_successes(tx, successes, {each.job_id for each in reports})
    if len(accepted) < len(reports):
        accepted |= await _decide(tx, [each for each in reports if each.run_id not in accepted])
    return frozenset(accepted)


async def _decide(tx: Tx, reports: Sequence[Report]) -> set[RunId]:
    if not reports:
        return set()
    rows = await timers.lock_with_dependents(tx, {each.job_id for each in reports})
    held = await leases.lock(tx, [LeaseKey(each.run_id, each.fence, each.worker_id) for each in reports])
    settling = SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))
    accepted: set[RunId] = set()
    orphans: list[tuple[Report, Lease]] = []
    for each in reports:
        lease = held.get(each.run_id)
        if lease is not None and each.run_id not in accepted:  # a run reported twice in one batch counts once
            accepted.add(each.run_id)
            if each.job_id in rows:
                settling.end_leased(lease, each.outcome, each.output)
            else:
                orphans.append((each, lease))
    await settling.write()
    await wake_dependents(settling)
    await settling.give_back()
    await _settle_orphans(tx, orphans)
    return accepted


async def _settle_orphans(tx: Tx, orphans: Sequence[tuple[Report, Lease]]) -> None:
    """Runs of jobs whose timer is gone, by whatever accident: their ends are written, and the others of the batch are not held up."""
    if not orphans:
        return
    ends = [
        SettledAttempt(settle_orphan(lease.facts, each.outcome, tx.now), each.output)
        for each, lease in orphans
    ]
    await leases.settle(tx, ends)
    await give_back_permits(
        tx, [Permit(lease.workspace_id, lease.concurrency_key) for _, lease in orphans if lease.is_limited]
    )
    for each, _ in orphans:
        log.error("report.job_without_timer", extra={"run": str(each.run_id), "job": str(each.job_id)})
