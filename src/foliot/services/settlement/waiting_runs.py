"""Advance waiting runs by the passing of time: they expire, their window opens, their gate has no upstream left, a freeze ends.

For the sweeper; any node may call these at any time. Each is a bounded transaction that locks the timers first.
"""

from __future__ import annotations

from dataclasses import dataclass

from foliot.domain.admission import Stage, StartRequest, Wait, admit, expiry_reason
from foliot.domain.outcomes import AskedSkip, Expired, Outcome
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import UPSTREAM_TOO_LATE
from foliot.domain.schedule import SkipReason
from foliot.services.jobs import job_types
from foliot.services.scheduling import freezes
from foliot.services.settlement.dependent_steps import finish_settlement, judge_gates_of
from foliot.services.settlement.settle_steps import SettlementWriter, lock_for_settlement
from foliot.services.webhooks import check_ins
from foliot.services.workers import limits
from foliot.services.workers.host_steps import why_away
from foliot.storage.queue import run_queue, unclaimed_runs
from foliot.storage.queue.unclaimed_runs import ExpiredRun
from foliot.storage.tx import Database, Role

BATCH = 200
_CALENDAR_CLOSED = Expired(SkipReason.BLACKOUT)


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
    ended = await expire_runs(database, limit) + await check_ins.end_unreported(database, limit)
    opened = await open_windows(database, limit)
    judged = await judge_gates(database, limit)
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


async def expire_runs(database: Database, limit: int = BATCH) -> int:
    """Settle runs that could not start in time: skipped, or failed where they were retries. Return how many ended.

    A run on which a calendar has closed waits for it to open, where the calendar defers.
    """
    async with database.tx(Role.ENGINE) as tx:
        found = await unclaimed_runs.expired(tx, limit)
        if not found:
            return 0
        writer = await lock_for_settlement(tx, (job_id for _, job_id in found))
        ended = 0
        for expired in await unclaimed_runs.still_expired(tx, [run_id for run_id, _ in found]):
            outcome = await _decide_outcome(writer, expired)
            if outcome != _CALENDAR_CLOSED or not await _keep_waiting(writer, expired):
                ended += len(await writer.end_unclaimed([expired.run_id], outcome))
        await finish_settlement(writer)
        return ended


async def open_windows(database: Database, limit: int = BATCH) -> int:
    """Release runs whose window or calendar has opened; return how many may start."""
    async with database.tx(Role.ENGINE) as tx:
        found = await unclaimed_runs.with_open_window(tx, limit)
        if not found:
            return 0
        writer = await lock_for_settlement(tx, found.values())
        started = await writer.release(await unclaimed_runs.still_waiting(tx, list(found), WaitsFor.WINDOW))
        await finish_settlement(writer)
        return started


async def judge_gates(database: Database, limit: int = BATCH) -> int:
    """Judge the runs at gates whose upstreams have all ended; return how many were judged.

    The end of an upstream run judges its gates itself. Left are those whose upstream ended without waking dependents: it was skipped at
    a gate of its own, or gave way to its next planned time.
    """
    async with database.tx(Role.ENGINE) as tx:
        found = await unclaimed_runs.at_settled_gates(tx, limit)
        if not found:
            return 0
        writer = await lock_for_settlement(tx, found.values())
        await judge_gates_of(writer, sorted(set(found.values())))
        await finish_settlement(writer)
        return len(found)


async def _keep_waiting(writer: SettlementWriter, expired: ExpiredRun) -> bool:
    """Return whether the run goes on waiting: for its calendar to open, or for what it waits for already."""
    tx, job = writer.tx, writer.job(expired.job_id).state.job
    request = StartRequest(
        job,
        tx.now,
        expired.trigger,
        Stage.LATE,
        start_within=None if expired.has_begun else job.limits.start_deadline,
        waits_for=expired.waits_for,
    )
    answer = admit(request)
    if not isinstance(answer, Wait):
        return False
    if answer.not_before is None:
        await run_queue.set_wait_until(tx, expired.run_id, answer.waits_for, None)
    elif expired.waits_for is not None or await run_queue.hold_ready(tx, [expired.run_id], WaitsFor.WINDOW):
        await run_queue.wait_for_opening(tx, expired.run_id, answer.not_before, answer.expires_at)
    return True  # also where a worker took it in the meantime


async def _decide_outcome(writer: SettlementWriter, expired: ExpiredRun) -> Outcome:
    if expired.waits_for is WaitsFor.UPSTREAM:
        return AskedSkip(SkipReason.DEPENDENCY_FAILED, UPSTREAM_TOO_LATE)
    job = writer.job(expired.job_id).state.job
    outcome = Expired(expiry_reason(job, expired.expires_at))
    if outcome == _CALENDAR_CLOSED or expired.target is None:
        return outcome
    away = await why_away(writer.tx, expired.workspace_id, expired.target, job)
    return outcome if away is None else Expired(SkipReason.HOST_OFFLINE, away)
