"""Audit results that came too late: under an older fence, or after the run had gone to another worker."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.access import Actor
from foliot.domain.outcomes import AskedSkip, Cancelled, Failed, Outcome, Succeeded, TimedOut
from foliot.services.identity.audit_steps import append_audit
from foliot.services.settlement.report import Report
from foliot.storage.queue import leases
from foliot.storage.runs import run_records
from foliot.storage.tx import Database, Role


def status_of(outcome: Outcome) -> str | None:
    """Return the status of this outcome in the run history; None when it leaves none."""
    match outcome:
        case Succeeded():
            return "succeeded"
        case Failed():
            return "failed"
        case TimedOut():
            return "timed_out"
        case Cancelled():
            return "cancelled"
        case AskedSkip():
            return "skipped"
        case _:
            return None


async def audit_refused(database: Database, refused: Sequence[Report]) -> None:
    """Audit refused results of workers at the database. Hand-backs and repeats of accepted reports are no news."""
    results = [(each, status) for each in refused if (status := status_of(each.outcome)) is not None]
    if not results:
        return
    async with database.tx(Role.ENGINE) as tx:
        workspaces = await run_records.list_workspaces(tx, [each.run_id for each, _ in results])
        for each, status in results:
            worker_id, run_id, fence = each.worker_id, each.run_id, each.fence
            repeated = await leases.reported_before(tx, worker_id, [(run_id, fence, status)])
            if run_id in workspaces and run_id not in repeated:
                after = {"worker": str(worker_id), "fence": fence, "outcome": status}
                async with tx.within(workspaces[run_id]):
                    await append_audit(tx, "report.refused", ("run", run_id), Actor("engine"), after=after)
