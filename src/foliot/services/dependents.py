"""What the ends of runs mean for the jobs that depend on theirs: new runs by trigger, an answer for those waiting at a gate."""

from __future__ import annotations

from dataclasses import replace

from foliot.domain.dependencies import (
    AwaitUpstream,
    Closed,
    Consumed,
    Dependencies,
    Ended,
    On,
    Triggered,
    consume,
    judge_gate,
    triggered,
)
from foliot.domain.freezing import freeze_at
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import AskedSkip, Cancelled
from foliot.domain.overlapping import Admission, admit
from foliot.domain.run import Trigger, WaitsFor
from foliot.domain.schedule import SkipReason
from foliot.domain.starting import MayNot, may_start
from foliot.services.settling import Settling
from foliot.storage import dependencies, runs, timers, waiting
from foliot.storage.runs import Made
from foliot.storage.timers import TimerRow, Told


async def wake_dependents(settling: Settling) -> None:
    """After the ends are written: evaluate every edge that leads away from them, under the dependents' locks."""
    upstreams = {run.job_id for run, _ in settling.ended if settling.rows[run.job_id].has_dependents}
    if not upstreams:
        return
    tx = settling.tx
    whens = {row.job_id: row.rules.spec.depends_when for row in settling.rows.values()}
    for job_id, edges in (await dependencies.facts(tx, whens)).items():
        mine = [edge for edge in edges.edges if edge.edge.upstream in upstreams]
        if mine and settling.status_of(job_id) is JobStatus.ACTIVE:
            await _Dependent(settling, settling.rows[job_id], edges).wake()


class _Dependent:
    def __init__(self, settling: Settling, row: TimerRow, edges: Dependencies) -> None:
        self.settling = settling
        self.tx = settling.tx
        self.row = row
        self.edges = edges
        # A run of this job may have ended in the same batch: who stands in line is not what the locked row says.
        self.live, self.behind, self.live_run_id = settling.line_of(row.job_id)
        self.number = row.number
        self.told = Told()
        self.consumed: list[tuple[JobId, Consumed]] = []

    async def wake(self) -> None:
        for run, settlement in self.settling.ended:
            edges = self._as_of(run.job_id, run.id, settlement.wakes)
            found = triggered(edges, Ended(run.id, self.tx.now))
            if found is not None:
                await self._start(found)
        if self.row.has_gate:
            await self._ask_gate()
        await dependencies.consume(self.tx, self.consumed)
        await self._write_told()

    def _as_of(self, upstream: JobId, run_id: RunId, wakes: tuple[On, ...]) -> Dependencies:
        """The edges as this very end leaves them, though a later one of the same batch may be the newest."""
        ended = Ended(run_id, self.tx.now)
        edges = (
            replace(facts, latest=ended)
            if facts.edge.upstream == upstream and facts.edge.on in wakes
            else facts
            for facts in self.edges.edges
        )
        return replace(self.edges, edges=tuple(edges))

    async def _start(self, found: Triggered) -> None:
        row, now = self.row, self.tx.now
        job = self.settling.around.job(row)
        admission = admit(job.overlap, self.live, self.behind)
        allowed = may_start(job.timetable, max(now, found.not_before))
        skip, waits_for, at, until = None, None, found.not_before, None
        if isinstance(allowed, MayNot):
            skip = allowed.reason
        elif admission is Admission.SKIP:
            skip = SkipReason.OVERLAP
        else:
            at, until = max(allowed.at, found.not_before), allowed.until
            if admission is not Admission.START:
                waits_for = WaitsFor.TURN
            elif freeze_at(self.settling.around.freezes_of(row), now) is not None:
                waits_for = WaitsFor.FREEZE
        self.told.numbers += 1
        self.number += 1
        made = Made(
            RunId(self.tx.new_id()),
            row.workspace_id,
            row.job_id,
            self.number,
            row.schedule_rev,
            row.rules,
            Trigger.DEPENDENCY,
            found.not_before,
            at,
            waits_for,
            until,
            upstream_run_id=found.upstream_run_id,
            skip=skip,
        )
        if not await runs.make(self.tx, [made]):
            return  # this upstream run has had its run
        self.consumed += [(row.job_id, mark) for mark in found.consumes]
        self.edges = consume(self.edges, found.consumes)
        if skip is not None:
            self.told.skips += 1
        elif waits_for is WaitsFor.TURN:
            self.told.waiting += 1
            self.behind += 1
            if admission is Admission.CANCEL_AND_WAIT:
                await self._cancel_live()
        else:
            self.told.live += 1
            self.live += 1
            self.told.live_run_id = self.live_run_id = made.id

    async def _cancel_live(self) -> None:
        """Where no worker has the live run it ends here and now, and the run that was just made comes next."""
        if self.live_run_id is None:
            return
        await self._write_told()
        row = replace(
            self.row,
            status=self.settling.status_of(self.row.job_id),
            live=self.live,
            waiting=self.behind,
            live_run_id=self.live_run_id,
        )
        ending = Settling(self.tx, {**self.settling.rows, row.job_id: row}, self.settling.around)
        await cancel_live(ending, self.live_run_id)
        await ending.write()
        self.live, self.behind, self.live_run_id = ending.line_of(row.job_id)

    async def _write_told(self) -> None:
        if self.told != Told():
            await timers.settle(self.tx, {self.row.job_id: self.told})
            self.told = Told()

    async def _ask_gate(self) -> None:
        for run in await waiting.at_the_gate(self.tx, [self.row.job_id]):
            verdict = judge_gate(self.edges, self.tx.now)
            if isinstance(verdict, AwaitUpstream):
                continue
            if isinstance(verdict, Closed):
                ending = Settling(self.tx, self.settling.rows, self.settling.around)
                await ending.end_standing([run.run_id], AskedSkip(verdict.reason, verdict.note))
                await ending.write()
                continue
            self.consumed += [(self.row.job_id, mark) for mark in verdict.consumes]
            self.told.live_run_id = run.run_id
            await waiting.promote(
                self.tx, [replace(run, available_at=max(run.available_at, self.tx.now), expires_at=None)]
            )


async def cancel_live(settling: Settling, run_id: RunId) -> None:
    """Ask the worker that has it to stop; where no worker has it, it ends with this settling."""
    if not await runs.request_cancel(settling.tx, [run_id]):
        await settling.end_standing([run_id], Cancelled())
