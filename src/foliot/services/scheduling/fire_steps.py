"""Write plans: records and timers by one statement, then cancels, promotions and status changes of the jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from foliot.domain.ids import JobId
from foliot.domain.lifecycle import STOPPED, JobEvent, JobStatus, advance
from foliot.domain.outcomes import AskedSkip
from foliot.domain.run_plan import EndGateWait, NewRun, Plan, SkippedTime
from foliot.services.jobs.context_steps import JobContext
from foliot.services.settlement.dependent_steps import cancel_live, finish_settlement
from foliot.services.settlement.settle_steps import ENGINE_ACTOR, SettlementWriter, log_stops
from foliot.storage.jobs import dependencies, jobs
from foliot.storage.jobs.definitions import UnreadableRules
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.notifications import missed_runs
from foliot.storage.timers import fire_quotas, fires
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

NO_ROWS: Mapping[JobId, TimerRow] = MappingProxyType({})
_REASONS = {
    JobEvent.COMPLETE: "It has completed all its runs.",
    JobEvent.EXPIRE: "It has reached its end time.",
    JobEvent.FAIL: "Its planned times could not be computed three times in a row.",
}


async def write_plans(tx: Tx, context: JobContext, planned: Sequence[PlannedTimer]) -> int:
    """Write the plans of a batch; return how many records were made."""
    recorded = await fires.fire(tx, planned)
    await fire_quotas.spend(tx, context.fire_quotas, planned)
    await _notice_errors(tx, planned)
    await _write_effects(tx, context, [each for each in planned if _has_effects(each.plan)], {}, ENGINE_ACTOR)
    return recorded


async def write_plan(
    tx: Tx,
    context: JobContext,
    planned_timer: PlannedTimer,
    by: str = ENGINE_ACTOR,
    dependents: Mapping[JobId, TimerRow] = NO_ROWS,
) -> int:
    """Write the plan of one job, without planned times that have a record already; return how many records were made.

    `dependents` are the timers, locked with its own, of the jobs that the end of one of its runs may wake.
    """
    planned = await fires.without_recorded(tx, [planned_timer])
    recorded = await fires.fire(tx, planned)
    await fire_quotas.spend(tx, context.fire_quotas, planned)
    await _notice_errors(tx, planned)
    await _write_effects(tx, context, [each for each in planned if _has_effects(each.plan)], dependents, by)
    return recorded


async def _notice_errors(tx: Tx, planned: Sequence[PlannedTimer]) -> None:
    """Write the notice and the audit entry of each job that could not be planned."""
    for each in planned:
        if each.errors:
            note = next(
                (record.note for record in each.plan.records if isinstance(record, SkippedTime)), None
            )
            reason = f"Its planned time could not be computed: {note or 'its definition cannot be read.'}"
            await missed_runs.insert_scheduler_error(tx, each.row.workspace_id, each.row.job_id, reason)


def may_end_runs(plan: Plan) -> bool:
    """Return whether the plan may end a run, which may wake dependents."""
    return any(
        isinstance(record, EndGateWait) or (isinstance(record, NewRun) and record.cancels_live)
        for record in plan.records
    )


def move_reason(events: Sequence[JobEvent]) -> str | None:
    """Return the sentence for a status change that the schedule made."""
    return _REASONS.get(events[-1]) if events else None


def status_after(status: JobStatus, events: Sequence[JobEvent]) -> JobStatus:
    for event in events:
        status = advance(status, event)
    return status


def _has_effects(plan: Plan) -> bool:
    """Return whether the plan changes more than records and the timer. Most plans do not."""
    if plan.events or plan.promotes:
        return True
    for record in plan.records:
        if isinstance(record, EndGateWait):
            return True
        if isinstance(record, NewRun) and (record.cancels_live or record.consumes):
            return True
    return False


async def _write_effects(
    tx: Tx, context: JobContext, planned: Sequence[PlannedTimer], others: Mapping[JobId, TimerRow], by: str
) -> None:
    """Write cancels, ends, promotions and status changes."""
    if not planned:
        return
    rows = {**others, **{each.row.job_id: _row_after(each) for each in planned}}
    writer = SettlementWriter(tx, rows, context)
    consumed = []
    for each in planned:
        row = each.row
        for record in each.plan.records:
            if isinstance(record, EndGateWait) and row.live_run_id is not None:
                await writer.end_unclaimed([row.live_run_id], AskedSkip(record.reason, record.note))
            elif isinstance(record, NewRun):
                consumed += [(row.job_id, mark) for mark in record.consumes]
                if record.cancels_live and row.live_run_id is not None:
                    await cancel_live(writer, row.live_run_id)
        if each.plan.promotes and row.rules.is_exclusive:
            writer.job(row.job_id).promote_oldest()
        elif each.plan.promotes:
            await writer.release_all(row.job_id)
        is_stopped = status_after(row.status, each.plan.events) in STOPPED
        if is_stopped and not isinstance(row.rules, UnreadableRules):  # those name no queue
            writer.requeue_scheduled(row.job_id)
    await dependencies.consume(tx, consumed)
    await finish_settlement(writer)
    changes = [_status_change(each) for each in planned if each.plan.events]
    await jobs.change_status(tx, changes, by)
    log_stops(changes)


def _row_after(each: PlannedTimer) -> TimerRow:
    """Return the timer row as `fires.fire` has written it, with the status that the events lead to."""
    row, plan = each.row, each.plan
    return row.with_load(plan.load_after(row.load))._replace(
        status=status_after(row.status, plan.events),
        timer=plan.timer,
        number=row.number + sum(not isinstance(record, EndGateWait) for record in plan.records),
    )


def _status_change(each: PlannedTimer) -> StatusChange:
    events = each.plan.events
    return StatusChange(each.row.job_id, status_after(each.row.status, events), move_reason(events))
