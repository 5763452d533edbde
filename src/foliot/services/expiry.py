"""Runs whose time has come while nobody touched them: too late to start, allowed to start, or with nothing left to wait for.

For the sweeper; any node may call these at any time. Each is one bounded transaction that locks the timers first.
"""

from __future__ import annotations

from collections.abc import Iterable

from foliot.domain.ids import JobId
from foliot.domain.outcomes import AskedSkip, Expired, Outcome
from foliot.domain.records import TOO_LATE
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import SkipReason
from foliot.domain.starting import why_expired
from foliot.services.dependents import ask_gates, wake_dependents
from foliot.services.loading import look_around
from foliot.services.settling import Settling
from foliot.storage import runs, timers, waiting
from foliot.storage.runs import Late
from foliot.storage.tx import Database, Role, Tx

BATCH = 200


async def expire(database: Database, limit: int = BATCH) -> int:
    """Settle what could not start in time: skipped, or failed where it was a retry. Answers with how many."""
    async with database.tx(Role.ENGINE) as tx:
        found = await runs.expired(tx, limit)
        if not found:
            return 0
        settling = await _settling(tx, (job_id for _, job_id in found))
        ended = 0
        for late in await runs.late(tx, [run_id for run_id, _ in found]):
            ended += len(await settling.end_standing([late.run_id], _outcome(settling, late)))
        await _finish(settling)
        return ended


async def open_windows(database: Database, limit: int = BATCH) -> int:
    """Let go what waited for its window or calendar; answers with how many may start."""
    async with database.tx(Role.ENGINE) as tx:
        found = await waiting.whose_window_opened(tx, limit)
        if not found:
            return 0
        settling = await _settling(tx, found.values())
        started = await settling.release(await waiting.still(tx, list(found), WaitsFor.WINDOW))
        await _finish(settling)
        return started


async def answer_gates(database: Database, limit: int = BATCH) -> int:
    """Judge the runs at gates whose upstreams have all ended; answers with how many were looked at.

    The end of an upstream run answers them itself. Left over are those whose upstream ended by a way that does not look further:
    it was skipped at a gate of its own, or gave way to its next planned time.
    """
    async with database.tx(Role.ENGINE) as tx:
        found = await waiting.at_open_gates(tx, limit)
        if not found:
            return 0
        settling = await _settling(tx, found.values())
        await ask_gates(settling, sorted(set(found.values())))
        await _finish(settling)
        return len(found)


async def _settling(tx: Tx, job_ids: Iterable[JobId]) -> Settling:
    rows = await timers.lock_with_dependents(tx, set(job_ids))
    return Settling(tx, rows, await look_around(tx, rows.values()))


async def _finish(settling: Settling) -> None:
    await settling.write()
    await wake_dependents(settling)


def _outcome(settling: Settling, late: Late) -> Outcome:
    if late.waits_for is WaitsFor.UPSTREAM:
        return AskedSkip(SkipReason.DEPENDENCY_FAILED, TOO_LATE)
    return Expired(why_expired(settling.facts_of(late.job_id).job, late.expires_at))
