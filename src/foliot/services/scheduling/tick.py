"""Tick: due timers -> plans -> one statement that moves the timers and records what they planned."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.errors import Unavailable
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.fast_path import find_shared_plan
from foliot.domain.planning.plan import plan, plan_error
from foliot.domain.schedule import ZONE_DATA_VERSION
from foliot.services.jobs.context_steps import JobContext, load_job_context
from foliot.services.scheduling.fire_steps import may_end_runs, write_plans
from foliot.services.scheduling.single_job import fire_one_by_one
from foliot.storage.jobs import freezes, job_types
from foliot.storage.timers import due, fires, timers
from foliot.storage.timers.fires import AlreadyRecordedError, PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

BATCH = 500


@dataclass(frozen=True, slots=True)
class TickResult:
    looked_at: int = 0
    recorded: int = 0


async def tick(database: Database, limit: int = BATCH) -> TickResult:
    """One transaction. Any node may call it at any time; dying anywhere and ticking again neither doubles nor loses a planned time."""
    try:
        try:
            return await _tick(database, limit)
        except AlreadyRecordedError as twice:
            log.warning("tick.met_recorded_times", extra={"detail": str(twice)})
            return await _tick(database, limit, is_careful=True)
    except Unavailable:
        raise
    except Exception:
        log.exception("tick.failed")
        return await _tick_one_by_one(database, limit)


async def _tick(database: Database, limit: int, *, is_careful: bool = False) -> TickResult:
    async with database.tx(Role.ENGINE) as tx:
        taken = await due.take_due(tx, limit, ZONE_DATA_VERSION)
        if not taken:
            return TickResult()
        # Asked once the timers are locked: a freeze that comes later waits for them.
        frozen = await freezes.since(tx, min(due.earliest_cursor(taken), tx.now))
        off = await job_types.off_among(tx, due.workspaces_of(taken))
        plain, rows = due.split(taken, tx.now, may_be_plain=not (frozen or is_careful), off=off)
        recorded = await due.fire_plainly(tx, plain)
        if not rows:
            return TickResult(len(taken), recorded)
        around = await load_job_context(tx, rows, gates=True, frozen=frozen, off=off)
        planned = [_planned(row, around, tx.now) for row in rows]
        if is_careful:
            planned = await fires.without_recorded(tx, planned)
        # The end of a run is told to dependents under their locks, which are taken before any other timer's.
        alone = {each.row.job_id for each in planned if each.row.has_dependents and may_end_runs(each.plan)}
        together = [each for each in planned if each.row.job_id not in alone] if alone else planned
        recorded += await write_plans(tx, around, together) if together else 0
    return TickResult(len(taken), recorded + await fire_one_by_one(database, sorted(alone), plan))


async def _tick_one_by_one(database: Database, limit: int) -> TickResult:
    """Somebody among those that are due spoils it for the rest."""
    async with database.tx(Role.ENGINE) as tx:
        job_ids = due.jobs_of(await due.take_due(tx, limit, ZONE_DATA_VERSION))
        await freezes.since(tx, tx.now)  # should this fail, it is no fault of the jobs
    return TickResult(len(job_ids), await fire_one_by_one(database, job_ids, plan))


async def next_due(database: Database) -> datetime | None:
    async with database.tx(Role.ENGINE) as tx:
        return await timers.next_due(tx)


def _planned(row: TimerRow, around: JobContext, now: datetime) -> PlannedTimer:
    try:
        if _is_ordinary(row, around) and (shared := find_shared_plan(row.rules, row.timer.cursor, now)):
            return PlannedTimer(row, shared)
        return PlannedTimer(row, plan(around.due(row), now))
    except Exception:  # one bad job must never stop the others
        log.exception("job.not_planned", extra={"workspace": str(row.workspace_id), "job": str(row.job_id)})
        return PlannedTimer(row, plan_error(row.timer, now, row.errors), row.errors + 1)


def _is_ordinary(row: TimerRow, around: JobContext) -> bool:
    return not (
        row.live
        or row.waiting
        or row.live_until
        or row.has_gate
        or row.skip_next is not None
        or row.status is not JobStatus.ACTIVE
        or (around.freezes and around.freezes_of(row))
        or around.is_off(row)
    )
