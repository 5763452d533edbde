"""Change the status of a job within a transaction: the steps of `job_status`, of bulk actions and of dry runs.

Why: docs/decisions/203-overlap-and-pause.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import JobId
from foliot.domain.job import JobLoad
from foliot.domain.lifecycle import JobEvent, JobStatus, advance
from foliot.domain.outcomes import AskedSkip, Cancelled
from foliot.domain.planning.plan import plan_resume
from foliot.domain.run import Trigger
from foliot.domain.run_end import TimerDelta
from foliot.domain.schedule import SkipReason
from foliot.services.evaluation import evaluate
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.quota_steps import check_archived_quota
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.jobs.dependency_steps import release_upstream
from foliot.services.jobs.lock_steps import LockedJob, lock_job
from foliot.services.scheduling.fire_steps import status_after, write_plan
from foliot.services.settlement.dependent_steps import finish_settlement
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.identity import audit
from foliot.storage.identity.audit import AuditEntry
from foliot.storage.jobs import jobs
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.queue import run_queue, unclaimed_runs
from foliot.storage.timers import timers
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

PURGED_AT_ONCE = 2_000  # run records, in one transaction
_ATTEMPTS = 3
DROPPED = "dropped by the pause of its job"


@dataclass(frozen=True, slots=True)
class StatusMove:
    status: JobStatus
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """A pause, with its end where it has one, or a disable."""

    event: JobEvent
    reason: str | None = None
    until: datetime | None = None
    dropped: int = 0  # runs that the pause ended
    budget: str | None = None  # the unit of the budget that is used up

    def check(self, now: datetime) -> None:
        if self.until is not None and self.until <= now:
            raise Invalid(
                "A pause ends in the future.", pointer="/until", hint="Leave it out to pause until resumed."
            )


async def pause_in(
    tx: Tx,
    job_id: JobId,
    scope: Scope,
    *,
    reason: str | None = None,
    until: datetime | None = None,
    drop_queued: bool = False,
) -> StatusMove:
    locked = await lock_job(tx, job_id, scope, dependents=drop_queued)
    order, row = Stop(JobEvent.PAUSE, reason, until), locked.row
    if drop_queued:
        order.check(tx.now)
        row, dropped = await _drop_queued(tx, locked)
        order = replace(order, dropped=dropped)
    await stop(tx, [row], order, scope.actor)
    return StatusMove(JobStatus.PAUSED)


async def _drop_queued(tx: Tx, locked: LockedJob) -> tuple[TimerRow, int]:
    """End the scheduled runs that no worker has as skipped. Return the timer row after that, and how many ended."""
    row, job_id = locked.row, locked.row.job_id
    status = row.status if row.status is JobStatus.PAUSED else advance(row.status, JobEvent.PAUSE)
    writer, dropped = locked.writer(tx, row._replace(status=status)), 0
    for _ in range(_ATTEMPTS):  # between two, a claim may make a run wait for a limit, or a limit release one
        if not (found := await unclaimed_runs.unclaimed_of_job(tx, row, Trigger.SCHEDULE)):
            break
        dropped += len(await writer.end_unclaimed(found, AskedSkip(SkipReason.PAUSED, DROPPED)))
    await finish_settlement(writer)
    return row.with_load(writer.job(job_id).state.load), dropped


async def disable_in(tx: Tx, job_id: JobId, scope: Scope, *, reason: str | None = None) -> StatusMove:
    locked = await lock_job(tx, job_id, scope)
    await stop(tx, [locked.row], Stop(JobEvent.DISABLE, reason), scope.actor)
    return StatusMove(JobStatus.DISABLED)


async def stop(tx: Tx, rows: Sequence[TimerRow], order: Stop, by: Actor) -> None:
    """Pause or disable jobs whose timers are locked, all or none. A pause of a paused job changes its end and its reason.

    The number of statements does not grow with the number of jobs.
    """
    order.check(tx.now)
    if order.event is JobEvent.PAUSE:
        await _change_pauses(tx, [row for row in rows if row.status is JobStatus.PAUSED], order, by)
        rows = [row for row in rows if row.status is not JobStatus.PAUSED]
    if not rows:
        return
    job_ids = [row.job_id for row in rows]
    facts = {} if order.budget is None else {"budget": order.budget}
    moves = [StatusChange(row.job_id, advance(row.status, order.event), order.reason, facts) for row in rows]
    await timers.clear_due(tx, *job_ids)
    await jobs.change_status(tx, moves, by.name)
    held = {row.job_id: await run_queue.queue_scheduled(tx, row) for row in rows if row.live}
    held = {job_id: count for job_id, count in held.items() if count}
    await timers.settle(tx, {job_id: TimerDelta(JobLoad().requeue(count)) for job_id, count in held.items()})
    await _promote_manual(tx, [row for row in rows if row.job_id in held and row.waiting], held)
    after: dict[str, Any] = {"reason": order.reason}
    if order.event is JobEvent.PAUSE:
        after["until"] = order.until and order.until.isoformat()
        if order.dropped:
            after["dropped_runs"] = order.dropped
        await jobs.set_paused_until(tx, order.until, *job_ids)
    if order.budget is not None:  # Foliot's own: the change of the status has written the entry
        return
    action = "job.paused" if order.event is JobEvent.PAUSE else "job.disabled"
    entries = [
        AuditEntry(action, "job", str(row.job_id), by, before={"status": row.status.value}, after=after)
        for row in rows
    ]
    await audit.append_many(tx, tx.new_ids(len(entries)), entries)


async def _change_pauses(tx: Tx, rows: Sequence[TimerRow], order: Stop, by: Actor) -> None:
    """Write the new end and reason to the pauses that differ."""
    pauses = await jobs.list_pauses(tx, [row.job_id for row in rows]) if rows else {}
    changed = [each for each in pauses.values() if order.dropped or each.differs(order.until, order.reason)]
    if not changed:
        return
    await jobs.change_pauses(tx, [each.job_id for each in changed], order.until, order.reason, by.name)
    after: dict[str, Any] = {"until": order.until and order.until.isoformat(), "reason": order.reason}
    if order.dropped:
        after["dropped_runs"] = order.dropped
    action = "job.paused" if order.budget is None else "job.auto_paused"
    entries = [
        AuditEntry(
            action,
            "job",
            str(each.job_id),
            by,
            before={
                "status": JobStatus.PAUSED.value,
                "until": each.until and each.until.isoformat(),
                "reason": each.reason,
            },
            after=after,
        )
        for each in changed
    ]
    await audit.append_many(tx, tx.new_ids(len(entries)), entries)


async def _promote_manual(tx: Tx, rows: Sequence[TimerRow], held: Mapping[JobId, int]) -> None:
    """Promote manual runs that waited behind scheduled runs: those wait for the resume now."""
    if not rows:
        return
    after = {
        row.job_id: row.with_load(row.load.requeue(held[row.job_id]))._replace(status=JobStatus.PAUSED)
        for row in rows
    }
    writer = SettlementWriter(tx, after, await load_job_context(tx, rows))
    for job_id in after:
        writer.job(job_id).promote_manual()
    await writer.write()


async def resume_in(tx: Tx, job_id: JobId, scope: Scope, *, catch_up: bool = False) -> StatusMove:
    locked = await lock_job(tx, job_id, scope, dependents=True)
    return await resume_locked(tx, locked, scope.actor, catch_up=catch_up)


async def archive_in(tx: Tx, job_id: JobId, scope: Scope, *, detach: bool = False) -> StatusMove:
    await release_upstream(tx, job_id, scope, detach=detach)
    locked = await lock_job(tx, job_id, scope)
    row = locked.row
    status = advance(row.status, JobEvent.ARCHIVE)
    await timers.clear_due(tx, job_id)
    await jobs.change_status(tx, [StatusChange(job_id, status)], scope.actor.name)
    await check_archived_quota(tx, scope.actor)
    # Archived first: the ends of its runs then neither promote nor complete anything.
    gone = row._replace(status=status, timer=replace(row.timer, due_at=None, next_at=None, ending=None))
    writer = locked.writer(tx, gone)
    cancelled = 0
    for _ in range(
        _ATTEMPTS
    ):  # between two attempts a claim may make a run wait for a limit, or a limit release one
        if not (found := await unclaimed_runs.unclaimed_of_job(tx, row)):
            break
        cancelled += len(await writer.end_unclaimed(found, Cancelled()))
    await writer.write()
    after = {"cancelled_runs": cancelled, "detached": detach}
    await append_audit(
        tx, "job.archived", ("job", job_id), scope.actor, before={"status": row.status.value}, after=after
    )
    return StatusMove(status)


async def restore_in(tx: Tx, job_id: JobId, scope: Scope) -> StatusMove:
    locked = await lock_job(tx, job_id, scope)
    status = advance(locked.row.status, JobEvent.RESTORE)
    await jobs.change_status(
        tx, [StatusChange(job_id, status, "restored from the archive")], scope.actor.name
    )
    before = {"status": locked.row.status.value}
    await append_audit(tx, "job.restored", ("job", job_id), scope.actor, before=before)
    return StatusMove(status)


async def purge_in(tx: Tx, job_id: JobId, scope: Scope, *, force: bool = False, detach: bool = False) -> int:
    await release_upstream(tx, job_id, scope, detach=detach)
    locked = await lock_job(tx, job_id, scope)
    leased = await unclaimed_runs.leased_of_job(tx, job_id)
    if leased and not force:
        raise Conflict(
            f"{len(leased)} of its runs are under way.",
            hint="Cancel them first, or purge with force: their results are then refused.",
        )
    stored = await jobs.get(tx, job_id)
    await run_queue.purge_job(tx, job_id, locked.row.rules.spec)
    await jobs.mark_purged(tx, job_id)
    gone = await jobs.purge(tx, job_id, PURGED_AT_ONCE)
    before = {"name": stored and stored.definition.name, "runs": gone, "under_way": len(leased)}
    await append_audit(tx, "job.purged", ("job", job_id), scope.actor, before=before)
    return gone


async def resume_locked(
    tx: Tx, locked: LockedJob, by: Actor, *, catch_up: bool, resumes_at: datetime | None = None
) -> StatusMove:
    """Resume a locked job, as of `resumes_at` where its pause had an end."""
    row = locked.row
    advance(row.status, JobEvent.RESUME)  # raises IllegalMove with a hint
    due = locked.context.due(row)
    now = resumes_at or tx.now
    plan = await evaluate(due.job.timetable, lambda: plan_resume(due, now, catch_up=catch_up))
    await write_plan(tx, locked.context, PlannedTimer(row, plan), by.name, locked.rows)
    await timers.reset_failures(tx, row.job_id)
    before = {"status": row.status.value}
    await append_audit(
        tx, "job.resumed", ("job", row.job_id), by, before=before, after={"catch_up": catch_up}
    )
    return StatusMove(status_after(row.status, plan.events), plan.timer.next_at)
