"""Lock a job and load its context. Every verb on a job or a run begins here and appends an audit entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, StaleRevision, not_found
from foliot.domain.ids import JobId
from foliot.domain.job import Job
from foliot.domain.lifecycle import JobStatus
from foliot.services.jobs.context_steps import JobContext, load_job_context
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.identity import members
from foliot.storage.jobs import jobs, revisions
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.timers import timers
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job whose timer is locked. `rows` holds the timers of its dependents too, where the end of a run may wake them."""

    row: TimerRow
    rows: Mapping[JobId, TimerRow]
    context: JobContext

    @property
    def job(self) -> Job:
        return self.context.job(self.row)

    def writer(self, tx: Tx, row: TimerRow | None = None) -> SettlementWriter:
        """Return a writer for the ends of its runs; `row` replaces its timer row where this transaction has changed it."""
        return SettlementWriter(tx, {**self.rows, self.row.job_id: row or self.row}, self.context)


async def lock_job(
    tx: Tx, job_id: JobId, scope: Scope | None = None, *, dependents: bool = False
) -> LockedJob:
    """Lock the job's timer and load its context. A job of another workspace, or one that the scope does not show, is not found.

    Raise `StaleRevision` where the job is not at the expected revision: under the lock no other transaction edits it.
    """
    rows = await (timers.lock_with_dependents if dependents else timers.lock)(tx, [job_id])
    row = rows.get(job_id)
    if row is None or row.workspace_id != tx.workspace_id:
        raise not_found("job")
    if scope is not None:
        await check_owner(tx, job_id, scope)
        if scope.expected_revision is not None and (stored := await jobs.get(tx, job_id)) is not None:
            await check_revision(tx, stored, scope.expected_revision)
    return LockedJob(row, rows, await load_job_context(tx, rows.values(), gates=True))


async def check_owner(tx: Tx, job_id: JobId, scope: Scope) -> None:
    """Raise `NotFound` for a job that the scope does not show."""
    if scope.visible_owner is not None and await jobs.load_owner(tx, job_id) != scope.visible_owner:
        raise not_found("job")


async def check_revision(tx: Tx, stored: StoredJob, expected: int | None) -> None:
    """Raise `StaleRevision` where the caller has seen another revision. Call it under the lock of the job's timer."""
    if expected not in (None, stored.revision):
        last = await revisions.get(tx, stored.id, stored.revision)
        who = "an unknown user" if last is None else await members.describe_actor(tx, last.actor)
        raise StaleRevision(
            f"This job is at revision {stored.revision}, not {expected}: {who} changed it"
            f" at {stored.updated_at.isoformat(timespec='seconds')}.",
            hint="Read it again and repeat the change.",
            revision=stored.revision,
        )


def require_not_archived(row: TimerRow, what: str) -> None:
    if row.status is JobStatus.ARCHIVED:
        raise Conflict(f"This job is archived; it cannot {what}.", hint="Restore it first.")


def require_type_on(locked: LockedJob) -> None:
    if locked.context.is_off(locked.row):
        raise Conflict(
            f"Jobs of type {locked.row.rules.spec.type} are switched off in this workspace.",
            hint="An administrator can switch the job type on again.",
        )
