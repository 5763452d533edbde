"""Advance waiting runs by the passing of time: the one call of the sweeper for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.services.jobs import job_types
from foliot.services.scheduling import freezes
from foliot.services.settlement import expiry
from foliot.services.webhooks import check_ins
from foliot.services.workers import limits
from foliot.storage.tx import Database

BATCH = 200


@dataclass(frozen=True, slots=True)
class WaitingRunsResult:
    held: int = 0  # by a freeze that has begun
    released: int = 0  # may start now: workers are woken
    ended: int = 0  # expired
    judged: int = 0  # at gates whose upstreams have all ended
    timers: int = 0  # planned again: the tick is woken
    miscounted: int = 0  # limits whose count was wrong
    is_full: bool = False  # a batch was full: there may be more


async def advance_waiting_runs(database: Database, limit: int = BATCH) -> WaitingRunsResult:
    """Advance one batch of each kind. Any node may call it at any time; repeating it changes nothing. Freezes come first: nothing may start under one."""
    held = await freezes.hold(database, limit)
    thawed = await freezes.thaw(database, limit)
    ended = await expiry.expire_runs(database, limit) + await check_ins.end_unreported(database, limit)
    opened = await expiry.open_windows(database, limit)
    judged = await expiry.judge_gates(database, limit)
    switched_on = await job_types.release_held_runs(database, limit)
    miscounted = await limits.recount(database)
    return WaitingRunsResult(
        held,
        thawed.runs + opened + switched_on,
        ended,
        judged,
        thawed.timers,
        miscounted,
        thawed.is_full or max(held, ended, opened, judged, switched_on) >= limit,
    )
