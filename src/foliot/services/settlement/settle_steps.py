"""Write the ends of runs and all that follows from them: counters, retries, promotions, status changes of the job.

Everything that ends a run uses this: reports, lost leases, cancels, expired deadlines. `domain.settlement` decides; the writer collects
the decisions of one transaction and writes them together, under the locks of the jobs' timers and of their dependents' timers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from foliot.domain.admission import Skip, Stage, Start, StartRequest, Wait, admit
from foliot.domain.dependencies import Dependencies, consume
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import STOPPED, JobStatus, advance
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.outcomes import AskedSkip, Expired, Outcome
from foliot.domain.run import RunFacts, Trigger, WaitsFor
from foliot.domain.run_end import Promotion, Settlement
from foliot.domain.schedule import SkipReason
from foliot.domain.settlement.job_settlement import JobSettlement
from foliot.domain.webhooks import NO_CHECK_IN
from foliot.services.jobs.context_steps import JobContext, load_job_context
from foliot.services.workers.limit_steps import give_back_permits
from foliot.storage.jobs import dependencies, jobs
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.notifications import notices
from foliot.storage.notifications.notices import NewNotice
from foliot.storage.queue import leases, run_queue, unclaimed_runs
from foliot.storage.queue.leases import Lease, SettledAttempt
from foliot.storage.queue.limits import Permit
from foliot.storage.queue.run_queue import UnclaimedRun
from foliot.storage.queue.unclaimed_runs import WaitingRun
from foliot.storage.timers import timers
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

log = logging.getLogger(__name__)

ENGINE_ACTOR = jobs.ENGINE
LONGEST_NOTICED = 2_000  # characters of an error in a notice
_GATE_CLOSED = frozenset({SkipReason.DEPENDENCY_FAILED, SkipReason.DEPENDENCY_MISSING})


@dataclass(slots=True)
class _Pending:
    """Decisions that are not written yet."""

    attempts: list[SettledAttempt] = field(default_factory=list)
    unclaimed: list[tuple[UnclaimedRun, Settlement]] = field(default_factory=list)
    frozen: list[RunId] = field(default_factory=list)
    requeued: list[RunId] = field(default_factory=list)
    stopped: set[JobId] = field(default_factory=set)
    changes: list[StatusChange] = field(default_factory=list)


async def lock_for_settlement(tx: Tx, job_ids: Iterable[JobId]) -> SettlementWriter:
    """Lock the timers of the jobs and of their dependents, and return a writer for them."""
    rows = await timers.lock_with_dependents(tx, set(job_ids))
    return SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))


class SettlementWriter:
    """Collects decisions and writes them. A transaction has one, and may write more than once.

    Its jobs have the state after the last decision, not the state of their rows.
    """

    def __init__(self, tx: Tx, rows: Mapping[JobId, TimerRow], context: JobContext) -> None:
        self.tx = tx
        self.rows = rows
        self.context = context
        self.ended: list[tuple[RunFacts, Settlement]] = []  # final ends; dependents are woken by them
        self._jobs: dict[JobId, JobSettlement] = {}
        self._pending = _Pending()
        self._permits: list[Permit] = []
        self._noticed = 0  # of `ended`
        self._failing = {job_id for job_id, row in rows.items() if row.has_incident}

    def job(self, job_id: JobId) -> JobSettlement:
        found = self._jobs.get(job_id)
        if found is None:
            row = self.rows[job_id]
            state = self.context.state(row)
            found = self._jobs[job_id] = JobSettlement(state, row.load, row.live_run_id, row.number)
        return found

    def end_leased(self, lease: Lease, outcome: Outcome, output: Any) -> None:
        """End the attempt of a run that a worker has."""
        run, row = lease.run, self.rows[lease.job_id]
        settlement = self._settle(run, outcome)
        spec = None if settlement.is_final else row.rules.spec
        self._pending.attempts.append(SettledAttempt(settlement, output, spec))
        if lease.is_limited:
            self._permits.append(Permit(lease.workspace_id, lease.concurrency_key))
        if settlement.is_final:
            return
        job = self.job(run.job_id)
        if run.trigger is Trigger.SCHEDULE and job.state.status in STOPPED:
            # The next attempt waits for the resume, like runs that were ready when the job was stopped.
            job.requeue()
            job.promote_manual()
            self._pending.requeued.append(run.id)
        elif self.context.is_frozen(row, run.id, run.trigger, self.tx.now):
            self._pending.frozen.append(run.id)

    async def end_unclaimed(self, run_ids: Sequence[RunId], outcome: Outcome) -> frozenset[RunId]:
        """End runs that no worker has, and return those. The others were claimed or have ended in the meantime."""
        taken = await run_queue.take_unclaimed(self.tx, run_ids)
        for each in taken:
            self._pending.unclaimed.append((each, self._settle(each.run, outcome)))
        return frozenset(each.run.id for each in taken)

    def requeue_scheduled(self, job_id: JobId) -> None:
        """Make the unclaimed scheduled runs of a stopped job wait for its resume."""
        self._pending.stopped.add(job_id)

    async def release(
        self, released: Sequence[WaitingRun], gates: Mapping[JobId, Dependencies] | None = None
    ) -> int:
        """Decide again about runs whose turn, gate, window, type or freeze has come; return how many may start now."""
        gates = dict(gates or {})
        started: list[WaitingRun] = []
        consumed = []
        for run in released:
            gate = gates.get(run.job_id)
            answer = admit(self._request(run, gate))
            if run.waits_for is WaitsFor.UPSTREAM:
                if isinstance(answer, Wait) and answer.waits_for is WaitsFor.UPSTREAM:
                    continue
                if not (isinstance(answer, Skip) and answer.reason in _GATE_CLOSED):
                    self.job(run.job_id).set_live(run.run_id)
            match answer:
                case Start(not_before=at, expires_at=until):
                    started.append(replace(run, available_at=at or run.available_at, expires_at=until))
                case Wait(waits_for=waits_for, expires_at=until):
                    await run_queue.set_wait_until(self.tx, run.run_id, waits_for, until)
                case Skip():
                    await self._end_released(run, answer)
                    continue
                case _ as never:
                    assert_never(never)
            if gate is not None and answer.consumes:
                consumed += [(run.job_id, mark) for mark in answer.consumes]
                gates[run.job_id] = consume(gate, answer.consumes)
        await dependencies.consume(self.tx, consumed)
        await run_queue.promote(self.tx, started)
        return len(started)

    async def release_all(self, job_id: JobId) -> None:
        """Release all runs that wait for their turn: the job allows overlap, or does so from now on."""
        queued = await unclaimed_runs.in_turn(self.tx, job_id)
        for run in queued:
            self.job(job_id).promoted(Promotion.MANUAL, run.run_id)
        await self.release(queued)

    async def write(self) -> None:
        """Promote waiting runs, then write all decisions since the last write."""
        while promotions := {job_id: job.promotion for job_id, job in self._jobs.items() if job.promotion}:
            await self._promote(promotions)
        pending, self._pending = self._pending, _Pending()
        if pending.attempts:
            await leases.settle(self.tx, pending.attempts)
        if pending.frozen:
            await run_queue.hold_ready(self.tx, pending.frozen, WaitsFor.FREEZE)
        if pending.requeued:
            await run_queue.requeue(self.tx, pending.requeued)
        for job_id in pending.stopped:  # only a job that allows overlap has other live runs
            job = self.job(job_id)
            if job.state.load.live > 0:
                job.requeue(await run_queue.queue_scheduled(self.tx, self.rows[job_id]))
        if pending.unclaimed:
            await leases.end_unclaimed(self.tx, pending.unclaimed)
        deltas = {job_id: delta for job_id, job in self._jobs.items() if (delta := job.take_delta())}
        if deltas:
            await timers.settle(self.tx, deltas)
        await notices.insert(self.tx, self._take_notices())  # before the stop of a job that they lead to
        if pending.changes:
            await jobs.change_status(self.tx, pending.changes, ENGINE_ACTOR)
        log_stops(pending.changes)

    async def give_back_permits(self) -> None:
        """Give back the permits of ended leases. The caller does it last: a claim holds runs while it waits for the limits, so a
        transaction that has locked the limits must need no more runs.
        """
        permits, self._permits = self._permits, []
        if permits:
            await give_back_permits(self.tx, permits)

    def _take_notices(self) -> list[NewNotice]:
        """Return the facts of the ends since the last write: failures, and the first success after one."""
        found = []
        for run, settlement in self.ended[self._noticed :]:
            workspace_id = self.rows[run.job_id].workspace_id
            if settlement.counters.failures:
                self._failing.add(run.job_id)
                found.append(NewNotice(workspace_id, *_failure_of(run, settlement)))
                where = {"run": str(run.id), "job": str(run.job_id), "workspace": str(workspace_id)}
                log.warning(
                    "run.failed",
                    extra={**where, "error": _error_of(settlement), "retries": settlement.retries_used},
                )
            elif settlement.counters.successes and run.job_id in self._failing:
                self._failing.discard(run.job_id)
                found.append(NewNotice(workspace_id, NoticeEvent.RECOVERED, run.job_id, run.id))
        self._noticed = len(self.ended)
        return found

    def _settle(self, run: RunFacts, outcome: Outcome) -> Settlement:
        job = self.job(run.job_id)
        status = job.state.status
        settlement = job.settle(run, outcome, self.tx.now, self.tx.chance.random())
        if settlement.is_final:
            self.ended.append((run, settlement))
        if settlement.event is not None:
            status = advance(status, settlement.event)
            self._pending.changes.append(StatusChange(run.job_id, status, settlement.reason))
            if status in STOPPED:
                self.requeue_scheduled(run.job_id)
        return settlement

    async def _promote(self, promotions: Mapping[JobId, Promotion]) -> None:
        """Make the next waiting run of each job live. Its gate is judged now: a run that waits for its turn needs no answer."""
        promoted = {run.job_id: run for run in await unclaimed_runs.next_in_turn(self.tx, promotions)}
        for job_id, promotion in promotions.items():
            run, job = promoted.get(job_id), self.job(job_id)
            job.promotion = None
            job.promoted(promotion, None if run is None else run.run_id)
        gated = {
            job_id: self.rows[job_id].rules.spec.depends_when
            for job_id, run in promoted.items()
            if run.trigger is Trigger.SCHEDULE and self.rows[job_id].has_gate
        }
        await self.release(list(promoted.values()), await dependencies.load_facts(self.tx, gated))

    def _request(self, run: WaitingRun, gate: Dependencies | None) -> StartRequest:
        job, row, now = self.job(run.job_id).state.job, self.rows[run.job_id], self.tx.now
        expires_at, deadline = run.expires_at, job.limits.start_deadline
        if run.waits_for is WaitsFor.UPSTREAM:  # its expiry so far was that of the gate
            expires_at = None if deadline is None else run.available_at + deadline
        return StartRequest(
            job,
            now,
            run.trigger,
            Stage.QUEUED,
            not_before=max(now, run.available_at),
            expires_at=expires_at,
            is_frozen=self.context.is_frozen(row, run.run_id, run.trigger, now),
            gate=gate,
            planned_for=run.available_at,
        )

    async def _end_released(self, run: WaitingRun, skip: Skip) -> None:
        is_closed = skip.reason in _GATE_CLOSED
        outcome = AskedSkip(skip.reason, skip.note or "") if is_closed else Expired(skip.reason)
        for each in await run_queue.take_unclaimed(self.tx, [run.run_id]):
            live = replace(each, run=replace(each.run, is_live=True))  # a promoted run counts as live
            self._pending.unclaimed.append((live, self._settle(live.run, outcome)))


def _failure_of(run: RunFacts, settlement: Settlement) -> tuple[NoticeEvent, JobId, RunId, Mapping[str, Any]]:
    """Return the fact of a failed run. One that nobody reported is missed: whether it ran is not known."""
    error = settlement.error
    if error is not None and error.code == NO_CHECK_IN:
        return NoticeEvent.MISSED, run.job_id, run.id, {"missed": 1, "reason": error.message}
    facts = {"error": _error_of(settlement), "retries": settlement.retries_used}
    return NoticeEvent.RUN_FAILED, run.job_id, run.id, facts


def log_stops(changes: Iterable[StatusChange]) -> None:
    """Log the jobs that the engine stopped: by their breaker, or because they could not be planned."""
    for change in changes:
        if change.status in (JobStatus.PAUSED, JobStatus.FAILED):
            facts = {"job": str(change.job_id), "status": change.status.value, "reason": change.reason}
            log.warning("job.stopped", extra=facts)


def _error_of(settlement: Settlement) -> dict[str, str] | None:
    error = settlement.error
    return None if error is None else {"code": error.code, "message": error.message[:LONGEST_NOTICED]}
