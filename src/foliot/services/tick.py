"""Tick: due timers -> plans -> one statement that moves the timers and records what they planned."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.planning import plan, plan_error
from foliot.domain.schedule import ZONE_DATA_VERSION
from foliot.services.firing import fire
from foliot.services.loading import Around, look_around
from foliot.storage import timers
from foliot.storage.timers import Planned, PlannedTwice, TimerRow
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

BATCH = 500


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
        return Ticked(len(rows), await fire(tx, around, planned))


async def next_due(database: Database) -> datetime | None:
    async with database.tx(Role.ENGINE) as tx:
        return await timers.next_due(tx)


def _planned(row: TimerRow, around: Around, now: datetime) -> Planned:
    due = around.due(row)
    try:
        return Planned(row, plan(due, now))
    except Exception:  # one bad job must never stop the others
        log.exception("job.not_planned", extra={"workspace": str(row.workspace_id), "job": str(row.job_id)})
        return Planned(row, plan_error(due, now, row.errors), row.errors + 1)
