"""Tick: due timers -> plans -> one statement that moves the timers and records what they planned."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.planning import plan, plan_error
from foliot.domain.records import DueJob, Plan
from foliot.domain.schedule import ZONE_DATA_VERSION
from foliot.storage import timers
from foliot.storage.timers import TimerRow
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

BATCH = 500


@dataclass(frozen=True, slots=True)
class Ticked:
    looked_at: int = 0
    recorded: int = 0


async def tick(database: Database, limit: int = BATCH) -> Ticked:
    """One transaction. Any node may call it at any time; dying anywhere and ticking again neither doubles nor loses a planned time."""
    async with database.tx(Role.ENGINE) as tx:
        rows = await timers.take_due(tx, limit, ZONE_DATA_VERSION)
        if not rows:
            return Ticked()
        plans = [_planned(row, tx.now) for row in rows]
        fired, _ = await timers.fire(tx, plans)
        return Ticked(len(rows), fired.recorded)


async def next_due(database: Database) -> datetime | None:
    async with database.tx(Role.ENGINE) as tx:
        return await timers.next_due(tx)


def _planned(row: TimerRow, now: datetime) -> tuple[TimerRow, Plan, int]:
    due = DueJob(
        job=row.rules.job(row.job_id, row.workspace_id, row.schedule_rev),
        status=row.status,
        timer=row.timer,
        runs_created=row.runs_created,
        live=row.live,
        waiting=row.waiting,
        live_until=row.live_until,
        skip_next=row.skip_next is not None,
    )
    try:
        return row, plan(due, now), 0
    except Exception:  # one bad job must never stop the others
        log.exception("job.not_planned", extra={"workspace": str(row.workspace_id), "job": str(row.job_id)})
        return row, plan_error(due, now, row.errors), row.errors + 1
