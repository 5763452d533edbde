"""Fire due timers: lock them, plan them, and write their plans in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foliot.domain.errors import Unavailable
from foliot.domain.planning.plan import plan, plan_error
from foliot.domain.schedule import ZONE_DATA_VERSION
from foliot.services.evaluation import evaluate_in_thread
from foliot.services.jobs.context_steps import JobContext, load_job_context
from foliot.services.scheduling.fast_path import split_due
from foliot.services.scheduling.fire_steps import may_end_runs, write_plans
from foliot.services.scheduling.single_job import fire_one_by_one
from foliot.storage.jobs import calendars, freezes, job_types
from foliot.storage.timers import fire_quotas, fires, outages, timers
from foliot.storage.timers.fires import AlreadyRecordedError, PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

BATCH = 500
LATE = timedelta(minutes=1)  # many planned times may lie behind


@dataclass(frozen=True, slots=True)
class TickResult:
    looked_at: int = 0
    recorded: int = 0
    at: datetime | None = field(default=None, compare=False)  # the instant of its transaction


async def tick(database: Database, limit: int = BATCH) -> TickResult:
    """Fire one batch of due timers. Any node may call it at any time; a crash and another tick neither double nor lose a planned time."""
    try:
        try:
            return await _tick(database, limit)
        except AlreadyRecordedError as twice:
            log.warning("tick.already_recorded", extra={"detail": str(twice)})
            return await _tick(database, limit, is_careful=True)
    except Unavailable:
        raise
    except Exception:
        log.exception("tick.failed")
        return await _tick_one_by_one(database, limit)


async def count_due(database: Database) -> int:
    """Count the timers that are due; a large number is not counted to its end."""
    async with database.tx(Role.ENGINE) as tx:
        return await timers.count_due(tx)


async def count_planned(database: Database) -> int:
    """Count the timers with a planned time; a large number is not counted to its end."""
    async with database.tx(Role.ENGINE) as tx:
        return await timers.count_planned(tx)


async def until_due(database: Database) -> timedelta | None:
    """Return the time until the first timer is due, by the database's clock. Return None when nothing is planned."""
    async with database.tx(Role.ENGINE) as tx:
        due_at = await timers.next_due(tx)
        return None if due_at is None else due_at - tx.now


async def until_next_due(database: Database) -> timedelta | None:
    """Return the time until the next timer falls due. Ignore timers that are due already: one that no scheduler takes must not keep the others waiting."""
    async with database.tx(Role.ENGINE) as tx:
        due_at = await timers.next_due_after(tx, tx.now)
        return None if due_at is None else due_at - tx.now


async def _tick(database: Database, limit: int, *, is_careful: bool = False) -> TickResult:
    """With `is_careful`, plan every timer by itself and leave out planned times that have their record already."""
    async with database.tx(Role.ENGINE) as tx:
        taken = await fires.take_due(tx, limit, ZONE_DATA_VERSION)
        if not taken:
            return TickResult(at=tx.now)
        # Read once the timers are locked: a freeze that comes later waits for them.
        frozen = await freezes.list_since(tx, min(fires.earliest_cursor(taken), tx.now))
        off = await job_types.disabled_in(tx, fires.workspace_ids_of(taken))
        quotas = await fire_quotas.lock(tx, fires.workspace_ids_of(taken), fires.job_ids_of(taken))
        scoped = await calendars.load(tx, fires.workspace_ids_of(taken))
        fast, others = (
            ([], taken) if is_careful else split_due(taken, tx.now, frozen, off, quotas.workspace_ids, scoped)
        )
        recorded = await fires.fire_fast(tx, fast)
        if not others:
            return TickResult(len(taken), recorded, tx.now)
        rows = [timer.read() for timer in others]
        context = await load_job_context(tx, rows, gates=True, frozen=frozen, off=off, quotas=quotas)
        planned = await _plan_all(rows, context, tx.now)
        if is_careful:
            planned = await fires.without_recorded(tx, planned)
        # The end of a run wakes dependents under their locks, and those are taken before any other timer's.
        alone = {each.row.job_id for each in planned if each.row.has_dependents and may_end_runs(each.plan)}
        together = [each for each in planned if each.row.job_id not in alone] if alone else planned
        recorded += await write_plans(tx, context, together) if together else 0
    recorded += await fire_one_by_one(database, sorted(alone), plan)
    return TickResult(len(taken), recorded, tx.now)


async def _tick_one_by_one(database: Database, limit: int) -> TickResult:
    """Fire each due job in its own transaction: one of them makes the batch fail."""
    async with database.tx(Role.ENGINE) as tx:
        job_ids = fires.job_ids_of(await fires.take_due(tx, limit, ZONE_DATA_VERSION))
        await freezes.list_since(tx, tx.now)  # where this fails, the jobs are not at fault
    return TickResult(len(job_ids), await fire_one_by_one(database, job_ids, plan), tx.now)


async def note_tick(database: Database) -> None:
    """Note that a scheduler runs, so that explanations can tell of the times without one."""
    async with database.tx(Role.ENGINE) as tx:
        if await outages.note_tick(tx):
            log.warning("scheduler.was_silent", extra={"until": tx.now.isoformat()})


async def next_due(database: Database) -> datetime | None:
    async with database.tx(Role.ENGINE) as tx:
        return await timers.next_due(tx)


async def _plan_all(rows: Sequence[TimerRow], context: JobContext, now: datetime) -> list[PlannedTimer]:
    """Plan a batch: off the event loop if one of them may take long, because it is late or has a window or calendars."""

    def plan_rows() -> list[PlannedTimer]:
        return [_plan(row, context, now) for row in rows]

    may_take_long = any(
        row.rules.spec.window or context.calendars_of(row) or (row.timer.due_at or now) < now - LATE
        for row in rows
    )
    return await evaluate_in_thread(plan_rows, is_tick=True) if may_take_long else plan_rows()


def _plan(row: TimerRow, context: JobContext, now: datetime) -> PlannedTimer:
    try:
        planned = plan(context.due(row), now)
        context.fire_quotas.take(row, planned)
        return PlannedTimer(row, planned)
    except Exception as error:  # one bad job must never stop the others
        log.exception("job.not_planned", extra={"workspace": str(row.workspace_id), "job": str(row.job_id)})
        return PlannedTimer(row, plan_error(row.timer, now, row.errors, error), row.errors + 1)
