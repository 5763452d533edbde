"""Settling: the ends of runs and all that follows from them, decided purely, added up per job, written together.

Everything that ends a run comes through here: reports, lost leases, cancels, expired deadlines. The timers of the jobs, and of the jobs
that depend on them, are locked by whoever starts one. A transaction has one Settling; it may be written more than once, and always
knows its jobs as they stand by now, not as their rows were when they were locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foliot.domain.dependencies import AwaitUpstream, Closed, judge_gate
from foliot.domain.freeze import Freeze, freeze_holding
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus, advance
from foliot.domain.outcomes import AskedSkip, Expired, Outcome
from foliot.domain.planning.plan import STOPPED
from foliot.domain.run import RunFacts, Trigger, WaitsFor, asked_at
from foliot.domain.schedule import planned_after
from foliot.domain.settlement.attempt_end import JobFacts
from foliot.domain.settlement.settle import Promotion, Settlement, settle, then
from foliot.domain.starting import MayNot, may_start_by, why_expired, without_closing
from foliot.services.jobs.context_steps import Around
from foliot.services.workers.limits import give_back
from foliot.storage.jobs import dependencies, jobs
from foliot.storage.jobs.jobs import Move
from foliot.storage.queue import leases, new_runs, unclaimed, waiting
from foliot.storage.queue.leases import Lease, Settled
from foliot.storage.queue.limits import Permit
from foliot.storage.queue.new_runs import Standing
from foliot.storage.queue.waiting import Waiting
from foliot.storage.timers import timers
from foliot.storage.timers.timer_rows import TimerRow
from foliot.storage.timers.timers import Told
from foliot.storage.tx import Tx

BY = jobs.ENGINE


class Settling:
    def __init__(self, tx: Tx, rows: Mapping[JobId, TimerRow], around: Around) -> None:
        self.tx = tx
        self.rows = rows
        self.around = around
        self.ended: list[tuple[RunFacts, Settlement]] = []  # the final ones, for dependents
        self._facts: dict[JobId, JobFacts] = {}
        self._live_runs: dict[JobId, RunId] = {}
        self._numbers: dict[JobId, int] = {}
        self._told: dict[JobId, Told] = {}
        self._leased: list[Settled] = []
        self._permits: list[Permit] = []
        self._frozen: list[RunId] = []
        self._put_back_runs: list[RunId] = []
        self._stopped: set[JobId] = set()
        self._standing: list[tuple[Standing, Settlement]] = []
        self._promotions: dict[JobId, Promotion] = {}
        self._moves: list[Move] = []

    def end_leased(self, lease: Lease, outcome: Outcome, output: Any) -> None:
        """A run that a worker had."""
        run = lease.facts
        settlement = self._settle(run, outcome)
        spec = None if settlement.is_final else self.rows[run.job_id].rules.spec
        self._leased.append(Settled(settlement, output, spec))
        if lease.is_limited:
            self._permits.append(Permit(lease.workspace_id, lease.concurrency_key))
        if settlement.is_final:
            return
        if run.trigger is Trigger.SCHEDULE and self.status_of(run.job_id) in STOPPED:
            self._put_back(run)
        elif self.freeze_of(run.job_id, run.id, run.trigger) is not None:
            self._frozen.append(run.id)

    async def end_standing(self, run_ids: Sequence[RunId], outcome: Outcome) -> frozenset[RunId]:
        """Runs that no worker has; answers with those that were ended. The others have been claimed or ended meanwhile."""
        taken = await new_runs.take_standing(self.tx, run_ids)
        for each in taken:
            self._standing.append((each, self._settle(each.facts, outcome)))
        return frozenset(each.facts.id for each in taken)

    def add_run(self, job_id: JobId, run_id: RunId, *, waits_for: WaitsFor | None, skipped: bool) -> None:
        """A run that was made beside the schedule."""
        facts, told = self.facts_of(job_id), self._told_of(job_id)
        if skipped:
            told.skips += 1
        elif waits_for is WaitsFor.TURN:
            told.waiting += 1
            self._facts[job_id] = replace(facts, waiting=facts.waiting + 1)
        else:
            told.live += 1
            told.live_run_id = self._live_runs[job_id] = run_id
            self._facts[job_id] = replace(facts, live=facts.live + 1)

    def hold_back(self, job_id: JobId) -> None:
        """The job is stopped: those of its runs that no worker has wait for the resume."""
        self._stopped.add(job_id)

    def is_live(self, job_id: JobId, run_id: RunId) -> None:
        """This run was live already, but waited at its gate; it does no longer."""
        self._told_of(job_id).live_run_id = self._live_runs[job_id] = run_id

    def next_number(self, job_id: JobId) -> int:
        self._told_of(job_id).numbers += 1
        number = self._numbers[job_id] = self._numbers.get(job_id, self.rows[job_id].number) + 1
        return number

    def promote_by_hand(self, job_id: JobId) -> None:
        """Of a stopped job whose line nobody leads: the oldest that somebody asked for."""
        facts = self.facts_of(job_id)
        if facts.live == 0 and facts.waiting > 0:
            self._promotions.setdefault(job_id, Promotion.BY_HAND)

    def promote(self, job_id: JobId) -> None:
        """The oldest of its line, though no end of a run asks for it."""
        facts = self.facts_of(job_id)
        if job_id not in self._promotions and facts.waiting > 0:
            self._promotions[job_id] = Promotion.OLDEST
            self._facts[job_id] = replace(facts, live=facts.live + 1, waiting=facts.waiting - 1)

    async def release(self, released: Sequence[Waiting]) -> int:
        """First in line: to `ready`, unless window, calendar, freeze or deadline say otherwise now.

        Answers with how many of them may start.
        """
        now = self.tx.now
        free: list[Waiting] = []
        for run in released:
            job = self.facts_of(run.job_id).job
            expires_at = without_closing(job, run.expires_at)
            allowed = may_start_by(run.trigger, job.timetable, max(now, run.available_at))
            if isinstance(allowed, MayNot):
                await self._end_released(run, Expired(allowed.reason))
            elif expires_at is not None and expires_at <= now:
                await self._end_released(run, Expired(why_expired(job, expires_at)))
            elif self.freeze_of(run.job_id, run.run_id, run.trigger) is not None:
                await waiting.hold_until(self.tx, run.run_id, WaitsFor.FREEZE, expires_at)
            else:
                until = min((each for each in (expires_at, allowed.ready_until) if each), default=None)
                free.append(replace(run, available_at=allowed.at, expires_at=until))
        await waiting.promote(self.tx, free)
        return len(free)

    async def release_line(self, job_id: JobId) -> None:
        """Everybody in line may start: the job does not mind overlap, or no longer does."""
        line = await waiting.in_line(self.tx, job_id)
        for run in line:
            self._is_live_now(run, Promotion.BY_HAND)
        await self.release(line)

    async def write(self) -> None:
        while self._promotions:
            promotions, self._promotions = self._promotions, {}
            await self._promote(promotions)
        leased, self._leased = self._leased, []
        if leased:
            await leases.settle(self.tx, leased)
        await waiting.hold_ready(self.tx, self._frozen, WaitsFor.FREEZE)
        await unclaimed.put_back(self.tx, self._put_back_runs)
        await self._hold_back()
        await new_runs.end_standing(self.tx, self._standing)
        await timers.settle(self.tx, self._told)
        await jobs.move(self.tx, self._moves, BY)
        self._told, self._frozen, self._standing, self._moves = {}, [], [], []
        self._put_back_runs, self._stopped = [], set()

    async def give_back(self) -> None:
        """Last of all, by whoever ended leases. A claim holds runs while it waits for the caps: who has the caps must want no more runs."""
        permits, self._permits = self._permits, []
        await give_back(self.tx, permits)

    def freeze_of(self, job_id: JobId, run_id: RunId, trigger: Trigger) -> Freeze | None:
        """The freeze that holds this run now. One that was asked for during a freeze, and so in spite of it, goes on."""
        freezes = self.around.freezes_of(self.rows[job_id])
        return freeze_holding(freezes, self.tx.now, asked_at(run_id, trigger)) if freezes else None

    def facts_of(self, job_id: JobId) -> JobFacts:
        known = self._facts.get(job_id)
        if known is None:
            row = self.rows[job_id]
            known = self._facts[job_id] = JobFacts(
                job=self.around.job(row),
                status=row.status,
                timer=row.timer,
                live=row.live,
                waiting=row.waiting,
                failures_in_a_row=row.failures_in_a_row,
            )
        return known

    def live_run_of(self, job_id: JobId) -> RunId | None:
        return self._live_runs.get(job_id, self.rows[job_id].live_run_id)

    def status_of(self, job_id: JobId) -> JobStatus:
        return self.facts_of(job_id).status

    def _settle(self, run: RunFacts, outcome: Outcome) -> Settlement:
        facts = self.facts_of(run.job_id)
        settlement = settle(run, outcome, facts, self.tx.now, self.tx.chance.random())
        self._facts[run.job_id] = then(run, facts, settlement)
        if not settlement.is_final:
            return settlement
        self.ended.append((run, settlement))
        told = self._told_of(run.job_id)
        if run.is_live:
            told.live -= 1
        else:
            told.waiting -= 1
        told.add(settlement)
        if settlement.promotes is not None:
            self._promotions[run.job_id] = settlement.promotes
        if settlement.event is not None:
            reason = settlement.notices[-1].text if settlement.notices else None
            status = advance(facts.status, settlement.event)
            self._moves.append(Move(run.job_id, status, reason))
            if status in STOPPED:
                self._stopped.add(run.job_id)
        return settlement

    async def _promote(self, promotions: Mapping[JobId, Promotion]) -> None:
        """The next in line of each job is live from here on. Its gate is asked now: it had no need of an answer before."""
        line = await waiting.next_in_line(self.tx, promotions)
        whens = {
            run.job_id: self.rows[run.job_id].rules.spec.depends_when
            for run in line
            if run.trigger is Trigger.SCHEDULE and self.rows[run.job_id].has_gate
        }
        gates = await dependencies.facts(self.tx, whens)
        free: list[Waiting] = []
        for run in line:
            self._is_live_now(run, promotions[run.job_id])
            verdict = judge_gate(gates[run.job_id], self.tx.now) if run.job_id in gates else None
            if isinstance(verdict, Closed):
                await self._end_released(run, AskedSkip(verdict.reason, verdict.note))
            elif isinstance(verdict, AwaitUpstream):
                timetable = self.facts_of(run.job_id).job.timetable
                following = planned_after(timetable, max(run.available_at, self.tx.now))
                until = run.expires_at if following is None else following.planned_for
                await waiting.hold_until(self.tx, run.run_id, WaitsFor.UPSTREAM, until)
            else:
                if verdict is not None:
                    marks = [(run.job_id, mark) for mark in verdict.consumes]
                    await dependencies.consume(self.tx, marks)
                free.append(run)
        await self.release(free)

    def _is_live_now(self, run: Waiting, promotion: Promotion) -> None:
        told = self._told_of(run.job_id)
        told.live, told.waiting = told.live + 1, told.waiting - 1
        told.live_run_id = self._live_runs[run.job_id] = run.run_id
        if promotion is Promotion.BY_HAND:  # the others are counted by the settlement that promotes them
            facts = self.facts_of(run.job_id)
            self._facts[run.job_id] = replace(facts, live=facts.live + 1, waiting=facts.waiting - 1)

    async def _end_released(self, run: Waiting, outcome: Outcome) -> None:
        for each in await new_runs.take_standing(self.tx, [run.run_id]):
            live = replace(each, facts=replace(each.facts, is_live=True))
            self._standing.append((live, self._settle(live.facts, outcome)))

    def _put_back(self, run: RunFacts) -> None:
        """Its job was stopped while it ran: the next attempt waits for the resume, as what was ready at the stop does."""
        told, facts = self._told_of(run.job_id), self.facts_of(run.job_id)
        told.live, told.waiting = told.live - 1, told.waiting + 1
        self._facts[run.job_id] = replace(facts, live=facts.live - 1, waiting=facts.waiting + 1)
        self._put_back_runs.append(run.id)
        self.promote_by_hand(run.job_id)

    async def _hold_back(self) -> None:
        """A job that stops by itself holds its other runs back, as one that somebody stops does. Only runs side by side are others."""
        for job_id in self._stopped:
            facts = self.facts_of(job_id)
            if facts.live > 0 and (count := await unclaimed.hold_back(self.tx, self.rows[job_id])):
                told = self._told_of(job_id)
                told.live, told.waiting = told.live - count, told.waiting + count
                self._facts[job_id] = replace(facts, live=facts.live - count, waiting=facts.waiting + count)

    def _told_of(self, job_id: JobId) -> Told:
        return self._told.setdefault(job_id, Told())
