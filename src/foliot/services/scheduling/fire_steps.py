"""Firing: what plans ask for, written. The tick fires what is due; edit and resume fire what the one job in hand leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from foliot.domain.ids import JobId
from foliot.domain.lifecycle import STOPPED, JobEvent, JobStatus, advance
from foliot.domain.outcomes import AskedSkip
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import EndGateWait, NewRun, Plan
from foliot.services.jobs.context_steps import JobContext
from foliot.services.settlement.dependent_steps import cancel_live, finish_settlement
from foliot.services.settlement.settle_steps import ENGINE_ACTOR, SettlementWriter
from foliot.storage.jobs import dependencies, jobs
from foliot.storage.jobs.definitions import UnreadableRules
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.timers import fires
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

NOBODY: Mapping[JobId, TimerRow] = MappingProxyType({})
_REASONS = {
    JobEvent.COMPLETE: "It has done all it was asked to do.",
    JobEvent.EXPIRE: "Its time is over.",
    JobEvent.FAIL: "Its planned times could not be computed three times in a row.",
}


async def write_plans(tx: Tx, context: JobContext, planned: Sequence[PlannedTimer]) -> int:
    """Records and timers in one statement, then whatever else the plans ask for. Answers with how many records were made."""
    recorded = await fires.fire(tx, planned)
    await _follow(tx, context, [each for each in planned if _has_more(each.plan)], {}, ENGINE_ACTOR)
    return recorded


async def write_plan(
    tx: Tx,
    context: JobContext,
    one: PlannedTimer,
    by: str = ENGINE_ACTOR,
    dependents: Mapping[JobId, TimerRow] = NOBODY,
) -> int:
    """For one job in hand: a planned time that has its record already is left out beforehand.

    `dependents` are the timers, locked with its own, of the jobs that the end of one of its runs may wake.
    """
    planned = await fires.without_recorded(tx, [one])
    recorded = await fires.fire(tx, planned)
    await _follow(tx, context, [each for each in planned if _has_more(each.plan)], dependents, by)
    return recorded


def may_end_runs(plan: Plan) -> bool:
    """Whether it may end a run, which dependents would have to be told."""
    return any(
        isinstance(record, EndGateWait) or (isinstance(record, NewRun) and record.cancels_live)
        for record in plan.records
    )


def move_reason(events: Sequence[JobEvent]) -> str | None:
    """Why the schedule itself moved a job, in a sentence."""
    return _REASONS.get(events[-1]) if events else None


def status_after(status: JobStatus, events: Sequence[JobEvent]) -> JobStatus:
    for event in events:
        status = advance(status, event)
    return status


def _has_more(plan: Plan) -> bool:
    """Most plans are one new run and a timer; only the others are looked at twice."""
    if plan.events or plan.promotes:
        return True
    for record in plan.records:
        if isinstance(record, EndGateWait):
            return True
        if isinstance(record, NewRun) and (record.cancels_live or record.consumes):
            return True
    return False


async def _follow(
    tx: Tx, context: JobContext, planned: Sequence[PlannedTimer], others: Mapping[JobId, TimerRow], by: str
) -> None:
    """What a plan asks for beside new records: cancels, ends, promotions, moves of the job itself."""
    if not planned:
        return
    rows = {**others, **{each.row.job_id: _after(each) for each in planned}}
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
        if status_after(row.status, each.plan.events) in STOPPED and not isinstance(
            row.rules, UnreadableRules
        ):
            writer.requeue_scheduled(row.job_id)  # of the others nobody knows the queue
    await dependencies.consume(tx, consumed)
    await finish_settlement(writer)
    await jobs.change_status(tx, [_move(each) for each in planned if each.plan.events], by)


def _after(each: PlannedTimer) -> TimerRow:
    """The timer as `fires.fire` has left it, and the job as its events will."""
    made = [record for record in each.plan.records if isinstance(record, NewRun)]
    row, load = each.row, each.row.load
    for record in made:
        load = load.queue() if record.waits_for is WaitsFor.TURN else load.start()
    return row.with_load(load)._replace(
        status=status_after(row.status, each.plan.events),
        timer=each.plan.timer,
        number=row.number + sum(not isinstance(record, EndGateWait) for record in each.plan.records),
    )


def _move(each: PlannedTimer) -> StatusChange:
    events = each.plan.events
    return StatusChange(each.row.job_id, status_after(each.row.status, events), move_reason(events))
