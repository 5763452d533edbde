"""Tend to what waits: all that the passing of time does to runs that stand in line. The sweeper's one call for this."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.services.jobs import job_types
from foliot.services.scheduling import freezes
from foliot.services.settlement import expiry
from foliot.services.workers import limits
from foliot.storage.tx import Database

BATCH = 200


@dataclass(frozen=True, slots=True)
class WaitingRunsResult:
    held: int = 0  # by a freeze that has begun
    let_go: int = 0  # may start now: workers should look
    ended: int = 0  # too late to start
    answered: int = 0  # at gates with nothing left to wait for
    timers: int = 0  # planned anew: the tick should look
    miscounted: int = 0  # caps whose count was wrong
    is_full: bool = False  # a batch was full: there may be more


async def advance_waiting_runs(database: Database, limit: int = BATCH) -> WaitingRunsResult:
    """Any node may call it at any time; repeating it changes nothing. Freezes come first, so that nothing starts under one."""
    held = await freezes.hold(database, limit)
    thawed = await freezes.thaw(database, limit)
    ended = await expiry.expire_runs(database, limit)
    opened = await expiry.open_windows(database, limit)
    answered = await expiry.judge_gates(database, limit)
    switched_on = await job_types.let_go(database, limit)
    miscounted = await limits.recount(database)
    return WaitingRunsResult(
        held,
        thawed.runs + opened + switched_on,
        ended,
        answered,
        thawed.timers,
        miscounted,
        thawed.is_full or max(held, ended, opened, answered, switched_on) >= limit,
    )
