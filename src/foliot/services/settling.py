"""Settling: the ends of runs and all that follows from them, decided purely, added up per job, written together.

Everything that ends a run comes through here: reports, lost leases, cancels, expired deadlines. The timers of the jobs, and of the jobs
that depend on them, are locked by whoever starts one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foliot.domain.freezing import freeze_at
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus, advance
from foliot.domain.outcomes import Expired, Outcome
from foliot.domain.run import RunFacts, WaitsFor
from foliot.domain.settlement import Promotion, Settlement, settle, then
from foliot.domain.starting import MayNot, may_start_by
from foliot.domain.verdicts import JobFacts
from foliot.services.loading import Around
from foliot.storage import jobs, leases, runs, timers, waiting
from foliot.storage.jobs import Move
from foliot.storage.runs import Standing
from foliot.storage.timers import TimerRow, Told
from foliot.storage.tx import Tx
from foliot.storage.waiting import Waiting

BY = "engine"


class Settling:
    def __init__(self, tx: Tx, rows: Mapping[JobId, TimerRow], around: Around) -> None:
        self.tx = tx
        self.rows = rows
        self.around = around
        self.ended: list[tuple[RunFacts, Settlement]] = []  # the final ones, for dependents
        self._facts: dict[JobId, JobFacts] = {}
        self._told: dict[JobId, Told] = {}
        self._leased: list[tuple[Settlement, Any]] = []
        self._standing: list[tuple[Standing, Settlement]] = []
        self._promotions: dict[JobId, Promotion] = {}
        self._moves: list[Move] = []

    def end_leased(self, run: RunFacts, outcome: Outcome, output: Any) -> None:
        """A run that a worker had."""
        self._leased.append((self._settle(run, outcome), output))

    async def end_standing(self, run_ids: Sequence[RunId], outcome: Outcome) -> frozenset[RunId]:
        """Runs that no worker has; answers with those that were ended. The others have been claimed or ended meanwhile."""
        taken = await runs.take_standing(self.tx, run_ids)
        for standing in taken:
            self._standing.append((standing, self._settle(standing.facts, outcome)))
        return frozenset(standing.facts.id for standing in taken)

    def promote(self, job_id: JobId, promotion: Promotion = Promotion.OLDEST) -> None:
        self._promotions[job_id] = promotion

    async def release_line(self, job_id: JobId) -> None:
        """Everybody in line may start: the job does not mind overlap, or no longer does."""
        await self._start(await waiting.in_line(self.tx, job_id))

    async def write(self) -> None:
        while self._promotions:
            promotions, self._promotions = self._promotions, {}
            await self._promote(promotions)
        if self._leased:
            await leases.settle(self.tx, self._leased)
        await runs.end_standing(self.tx, self._standing)
        await timers.settle(self.tx, self._told)
        await jobs.move(self.tx, self._moves, BY)

    def status_of(self, job_id: JobId) -> JobStatus:
        return self._facts_of(job_id).status

    def _settle(self, run: RunFacts, outcome: Outcome) -> Settlement:
        facts = self._facts_of(run.job_id)
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
            self._moves.append(Move(run.job_id, advance(facts.status, settlement.event), reason))
        return settlement

    async def _promote(self, promotions: Mapping[JobId, Promotion]) -> None:
        """The next in line of each job."""
        found = await waiting.next_in_line(self.tx, promotions)
        for run in found:
            if promotions[run.job_id] is Promotion.BY_HAND:
                facts = self._facts_of(run.job_id)
                self._facts[run.job_id] = replace(facts, live=facts.live + 1, waiting=facts.waiting - 1)
        await self._start(found)

    async def _start(self, line: Sequence[Waiting]) -> None:
        """Their turn has come, unless window, calendar, freeze or deadline say otherwise now."""
        now = self.tx.now
        free: list[Waiting] = []
        frozen: list[RunId] = []
        for run in line:
            row, job = self.rows[run.job_id], self._facts_of(run.job_id).job
            told = self._told_of(run.job_id)
            told.live, told.waiting, told.live_run_id = told.live + 1, told.waiting - 1, run.run_id
            allowed = may_start_by(run.trigger, job.timetable, max(now, run.available_at))
            if isinstance(allowed, MayNot):
                await self._end_promoted(run, Expired(allowed.reason))
            elif run.expires_at is not None and run.expires_at <= now:
                await self._end_promoted(run, Expired())
            elif freeze_at(self.around.freezes_of(row), now) is not None:
                frozen.append(run.run_id)
            else:
                until = min((each for each in (run.expires_at, allowed.until) if each), default=None)
                free.append(replace(run, available_at=allowed.at, expires_at=until))
        await waiting.promote(self.tx, free)
        await waiting.hold(self.tx, frozen, WaitsFor.FREEZE)

    async def _end_promoted(self, run: Waiting, outcome: Outcome) -> None:
        for standing in await runs.take_standing(self.tx, [run.run_id]):
            live = replace(standing, facts=replace(standing.facts, is_live=True))
            self._standing.append((live, self._settle(live.facts, outcome)))

    def _told_of(self, job_id: JobId) -> Told:
        return self._told.setdefault(job_id, Told())

    def _facts_of(self, job_id: JobId) -> JobFacts:
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
