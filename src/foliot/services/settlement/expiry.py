"""Runs whose time has come while nobody touched them: too late to start, allowed to start, or with nothing left to wait for.

For the sweeper; any node may call these at any time. Each is one bounded transaction that locks the timers first.
"""

from __future__ import annotations

from collections.abc import Iterable

from foliot.domain.admission import Stage, StartRequest, Wait, admit, expiry_reason
from foliot.domain.ids import JobId
from foliot.domain.outcomes import AskedSkip, Expired, Outcome
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import UPSTREAM_TOO_LATE
from foliot.domain.schedule import SkipReason
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.settlement.dependent_steps import judge_gates_of, wake_dependents
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.services.workers.target_steps import why_away
from foliot.storage.queue import run_queue, waiting
from foliot.storage.queue.waiting import ExpiredRun
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

BATCH = 200
_CLOSED = Expired(SkipReason.BLACKOUT)


async def expire_runs(database: Database, limit: int = BATCH) -> int:
    """Settle what could not start in time: skipped, or failed where it was a retry. Answers with how many.

    What a calendar has closed upon is put off until it opens, where the calendar says so.
    """
    async with database.tx(Role.ENGINE) as tx:
        found = await waiting.expired(tx, limit)
        if not found:
            return 0
        settling = await _settling(tx, (job_id for _, job_id in found))
        ended = 0
        for late in await waiting.still_expired(tx, [run_id for run_id, _ in found]):
            outcome = await _outcome(settling, late)
            if outcome != _CLOSED or not await _put_off(settling, late):
                ended += len(await settling.end_standing([late.run_id], outcome))
        await _finish(settling)
        return ended


async def open_windows(database: Database, limit: int = BATCH) -> int:
    """Let go what waited for its window or calendar; answers with how many may start."""
    async with database.tx(Role.ENGINE) as tx:
        found = await waiting.with_open_window(tx, limit)
        if not found:
            return 0
        settling = await _settling(tx, found.values())
        started = await settling.release(await waiting.still_waiting(tx, list(found), WaitsFor.WINDOW))
        await _finish(settling)
        return started


async def judge_gates(database: Database, limit: int = BATCH) -> int:
    """Judge the runs at gates whose upstreams have all ended; answers with how many were looked at.

    The end of an upstream run answers them itself. Left over are those whose upstream ended by a way that does not look further:
    it was skipped at a gate of its own, or gave way to its next planned time.
    """
    async with database.tx(Role.ENGINE) as tx:
        found = await waiting.at_settled_gates(tx, limit)
        if not found:
            return 0
        settling = await _settling(tx, found.values())
        await judge_gates_of(settling, sorted(set(found.values())))
        await _finish(settling)
        return len(found)


async def _settling(tx: Tx, job_ids: Iterable[JobId]) -> SettlementWriter:
    rows = await timers.lock_with_dependents(tx, set(job_ids))
    return SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))


async def _finish(settling: SettlementWriter) -> None:
    await settling.write()
    await wake_dependents(settling)


async def _put_off(settling: SettlementWriter, late: ExpiredRun) -> bool:
    """Return whether the run goes on waiting: for its calendar to open, or for what it waits for already."""
    tx, job = settling.tx, settling.job(late.job_id).state.job
    request = StartRequest(
        job,
        tx.now,
        late.trigger,
        Stage.LATE,
        start_within=None if late.has_begun else job.limits.start_deadline,
        waits_for=late.waits_for,
    )
    answer = admit(request)
    if not isinstance(answer, Wait):
        return False
    if answer.not_before is None:
        await run_queue.set_wait_until(tx, late.run_id, answer.waits_for, None)
    elif late.waits_for is not None or await run_queue.hold_ready(tx, [late.run_id], WaitsFor.WINDOW):
        await run_queue.wait_for_opening(tx, late.run_id, answer.not_before, answer.expires_at)
    return True  # also where a worker took it in the meantime


async def _outcome(settling: SettlementWriter, late: ExpiredRun) -> Outcome:
    if late.waits_for is WaitsFor.UPSTREAM:
        return AskedSkip(SkipReason.DEPENDENCY_FAILED, UPSTREAM_TOO_LATE)
    job = settling.job(late.job_id).state.job
    why = Expired(expiry_reason(job, late.expires_at))
    if why == _CLOSED or late.target is None:
        return why
    away = await why_away(settling.tx, late.workspace_id, late.target, job)
    return why if away is None else Expired(SkipReason.HOST_OFFLINE, away)
