"""Tick: due timers -> plans -> one statement that moves the timers and records what they planned."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobEvent, advance
from foliot.domain.outcomes import AskedSkip
from foliot.domain.planning import plan, plan_error
from foliot.domain.records import EndWait, NewRun, Plan
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import ZONE_DATA_VERSION
from foliot.services.dependents import cancel_live, wake_dependents
from foliot.services.loading import Around, look_around
from foliot.services.settling import BY, Settling
from foliot.storage import dependencies, jobs, timers
from foliot.storage.jobs import Move
from foliot.storage.timers import Planned, PlannedTwice, TimerRow
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

BATCH = 500
_REASONS = {
    JobEvent.COMPLETE: "It has done all it was asked to do.",
    JobEvent.EXPIRE: "Its time is over.",
    JobEvent.FAIL: "Its planned times could not be computed three times in a row.",
}


@dataclass(frozen=True, slots=True)
class Ticked:
    looked_at: int = 0
    recorded: int = 0


async def tick(database: Database, limit: int = BATCH) -> Ticked:
    """One transaction. Any node may call it at any time; dying anywhere and ticking again neither doubles nor loses a planned time."""
    try:
        return await _tick(database, limit)
    except PlannedTwice as twice:
        log.warning("tick.met_recorded_times", extra={"detail": str(twice)})
        return await _tick(database, limit, is_careful=True)


async def _tick(database: Database, limit: int, *, is_careful: bool = False) -> Ticked:
    async with database.tx(Role.ENGINE) as tx:
        rows = await timers.take_due(tx, limit, ZONE_DATA_VERSION)
        if not rows:
            return Ticked()
        around = await look_around(tx, rows, gates=True)
        planned = [_planned(row, around, tx.now) for row in rows]
        if is_careful:
            planned = await timers.without_recorded(tx, planned)
        recorded = await timers.fire(tx, planned)
        await follow(tx, around, planned)
        return Ticked(len(rows), recorded)


async def next_due(database: Database) -> datetime | None:
    async with database.tx(Role.ENGINE) as tx:
        return await timers.next_due(tx)


def _planned(row: TimerRow, around: Around, now: datetime) -> Planned:
    due = around.due(row)
    try:
        return Planned(row, plan(due, now), 0)
    except Exception:  # one bad job must never stop the others
        log.exception("job.not_planned", extra={"workspace": str(row.workspace_id), "job": str(row.job_id)})
        return Planned(row, plan_error(due, now, row.errors), row.errors + 1)


def _has_more(plan: Plan) -> bool:
    """Most plans are one new run and a timer; only the others are looked at twice."""
    if plan.events or plan.promotes:
        return True
    return any(
        isinstance(record, EndWait)
        or (isinstance(record, NewRun) and (record.cancels_live or record.consumes))
        for record in plan.records
    )


async def follow(tx: Tx, around: Around, planned: Sequence[Planned]) -> None:
    """What a plan asks for beside new records: cancels, ends, promotions, moves of the job itself."""
    planned = [each for each in planned if _has_more(each.plan)]
    if not planned:
        return
    rows = {each.row.job_id: _after(each) for each in planned}
    settling = Settling(tx, rows, around)
    consumed = []
    for each in planned:
        row = each.row
        for record in each.plan.records:
            if isinstance(record, EndWait) and row.live_run_id is not None:
                await settling.end_standing([row.live_run_id], AskedSkip(record.reason, record.note))
            elif isinstance(record, NewRun):
                consumed += [(row.job_id, mark) for mark in record.consumes]
                if record.cancels_live and row.live_run_id is not None:
                    await cancel_live(settling, row.live_run_id)
        if each.plan.promotes:
            settling.promote(row.job_id)
    await dependencies.consume(tx, consumed)
    await settling.write()
    await wake_dependents(settling)
    await jobs.move(tx, [_move(each) for each in planned if each.plan.events], BY)


def _after(each: Planned) -> TimerRow:
    """The timer as `fire` has left it."""
    made = [record for record in each.plan.records if isinstance(record, NewRun)]
    behind = sum(record.waits_for is WaitsFor.TURN for record in made)
    numbered = sum(not isinstance(record, EndWait) for record in each.plan.records)
    row = each.row
    return row._replace(
        timer=each.plan.timer,
        live=row.live + len(made) - behind,
        waiting=row.waiting + behind,
        number=row.number + numbered,
    )


def _move(each: Planned) -> Move:
    status = each.row.status
    for event in each.plan.events:
        status = advance(status, event)
    return Move(JobId(each.row.job_id), status, _REASONS.get(each.plan.events[-1]))
