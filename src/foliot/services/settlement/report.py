"""Settle the reports of workers in one transaction. The sweeper reports lost leases in the same way.

Why: docs/decisions/401-fast-path-of-a-settlement.md
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from foliot.domain.ids import JobId, RunId, WorkerId
from foliot.domain.outcomes import Outcome, Succeeded
from foliot.domain.settlement.settle import settle_orphan
from foliot.domain.usage import Usage
from foliot.services.settlement.dependent_steps import finish_settlement
from foliot.services.settlement.settle_steps import lock_for_settlement
from foliot.services.settlement.usage_steps import record_reported_usage
from foliot.services.workers.limit_steps import give_back_permits
from foliot.storage.queue import leases
from foliot.storage.queue.leases import Lease, LeaseKey, SettledAttempt
from foliot.storage.queue.limits import Permit
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)


class Report(NamedTuple):
    """The outcome of one attempt, under the fence of its lease."""

    run_id: RunId
    job_id: JobId
    fence: int
    worker_id: WorkerId
    outcome: Outcome
    output: Any = None
    usage: Usage | None = None  # what the attempt used, by unit


async def report(database: Database, reports: Sequence[Report]) -> frozenset[RunId]:
    """Settle a batch; return the runs that were accepted. The leases of the others belong to another worker now, or have ended."""
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
    """Settle the successes on the fast path by one statement, then decide the other reports one by one."""
    if any(each.usage for each in reports):
        await record_reported_usage(tx, reports)
    successes = {
        each.run_id: (each.run_id, each.fence, each.worker_id, each.output)
        for each in reports
        if isinstance(each.outcome, Succeeded)
    }
    accepted = await leases.settle_successes(tx, successes, {each.job_id for each in reports})
    if len(accepted) < len(reports):
        others = [each for each in reports if each.run_id not in accepted]
        accepted |= await _settle_one_by_one(tx, others) if others else set()
    return frozenset(accepted)


async def _settle_one_by_one(tx: Tx, reports: Sequence[Report]) -> set[RunId]:
    writer = await lock_for_settlement(tx, {each.job_id for each in reports})
    held = await leases.lock(tx, [LeaseKey(each.run_id, each.fence, each.worker_id) for each in reports])
    accepted: set[RunId] = set()
    orphans: list[tuple[Report, Lease]] = []
    for each in reports:
        lease = held.get(each.run_id)
        if lease is not None and each.run_id not in accepted:  # a run reported twice in one batch counts once
            accepted.add(each.run_id)
            if each.job_id in writer.rows:
                writer.end_leased(lease, each.outcome, each.output)
            else:
                orphans.append((each, lease))
    await finish_settlement(writer)
    if orphans:
        await _settle_orphans(tx, orphans)
    return accepted


async def _settle_orphans(tx: Tx, orphans: Sequence[tuple[Report, Lease]]) -> None:
    """Settle runs of jobs that have no timer any more, whatever removed it: they must not stop the others of the batch."""
    ends = [
        SettledAttempt(settle_orphan(lease.run, each.outcome, tx.now), each.output) for each, lease in orphans
    ]
    await leases.settle(tx, ends)
    limited = [lease for _, lease in orphans if lease.is_limited]
    await give_back_permits(tx, [Permit(lease.workspace_id, lease.concurrency_key) for lease in limited])
    for each, _ in orphans:
        log.error("report.job_without_timer", extra={"run": str(each.run_id), "job": str(each.job_id)})
