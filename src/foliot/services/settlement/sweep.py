"""Settle runs that no worker will report: their worker is gone, their deadline has passed, or it ignored a cancel.

Why: docs/decisions/301-heartbeat-and-sweeper.md
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from foliot.domain.errors import Unavailable
from foliot.domain.ids import RunId
from foliot.domain.outcomes import Cancelled, Lost, Outcome, TimedOut
from foliot.services.settlement.report import Report, report
from foliot.storage.tx import Database, Role
from foliot.storage.workers import workers
from foliot.storage.workers.workers import HeldLease

log = logging.getLogger(__name__)

BATCH = 500
DEADLINE_SLACK = timedelta(seconds=10)  # a living worker ends its runs itself and reports a little late
CANCEL_GRACE = timedelta(seconds=30)  # for work that stops in good order


@dataclass(frozen=True, slots=True)
class SweepResult:
    struck_off: int = 0
    lost: int = 0
    timed_out: int = 0
    cancelled: int = 0
    is_full: bool = False  # a batch was full: there may be more


async def sweep(database: Database, limit: int = BATCH) -> SweepResult:
    """Settle one batch of each kind. Any node may call it at any time: the first report counts, and the fence refuses the other."""
    async with database.tx(Role.ENGINE) as tx:
        silent = await workers.remove_silent(tx)
    for worker_id, name in silent:
        log.warning("worker.struck_off", extra={"worker": str(worker_id), "name_of_worker": name})
    async with database.tx(Role.ENGINE) as tx:
        ignored = await workers.list_ignored_cancels(tx, tx.now - CANCEL_GRACE, limit)
        abandoned = await workers.list_abandoned_leases(tx, limit)
        overdue = await workers.list_overdue_leases(tx, tx.now - DEADLINE_SLACK, limit)
    # One reason per run: an ignored cancel is a cancel, and a run without a worker cannot time out.
    cancelled = await _settle(database, ignored, Cancelled())
    lost = await _settle(database, _without(abandoned, ignored), Lost())
    timed_out = await _settle(database, _without(overdue, [*ignored, *abandoned]), TimedOut())
    return SweepResult(
        len(silent), lost, timed_out, cancelled, limit in (len(ignored), len(abandoned), len(overdue))
    )


def _without(leases: Sequence[HeldLease], others: Sequence[HeldLease]) -> list[HeldLease]:
    known = {lease.run_id for lease in others}
    return [lease for lease in leases if lease.run_id not in known]


async def _settle(database: Database, leases: Sequence[HeldLease], outcome: Outcome) -> int:
    if not leases:
        return 0
    try:
        settled = await report(database, [_report(lease, outcome) for lease in leases])
    except Unavailable:
        raise
    except Exception:
        log.exception("sweep.failed", extra={"runs": len(leases)})
        settled = await _one_by_one(database, leases, outcome)
    for lease in leases:
        if lease.run_id in settled:
            facts = {"run": str(lease.run_id), "fence": lease.fence, "worker": str(lease.worker_id)}
            log.warning("run.swept", extra={**facts, "as": type(outcome).__name__})
    return len(settled)


async def _one_by_one(database: Database, leases: Sequence[HeldLease], outcome: Outcome) -> frozenset[RunId]:
    """Settle runs one by one: one that cannot be settled must not stop the others."""
    settled: frozenset[RunId] = frozenset()
    for lease in leases:
        try:
            settled |= await report(database, [_report(lease, outcome)])
        except Unavailable:
            raise
        except Exception:
            log.exception("run.not_swept", extra={"run": str(lease.run_id)})
    return settled


def _report(lease: HeldLease, outcome: Outcome) -> Report:
    return Report(lease.run_id, lease.job_id, lease.fence, lease.worker_id, outcome)
