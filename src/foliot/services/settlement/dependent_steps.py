"""What the ends of runs mean for the jobs that depend on theirs: new runs by trigger, an answer for those waiting at a gate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import AskedSkip, Cancelled
from foliot.domain.overlapping import Admission, admit
from foliot.domain.run import RunFacts, Trigger, WaitsFor
from foliot.domain.schedule import SkipReason
from foliot.domain.settlement.settle import Settlement
from foliot.domain.starting import MayNot, may_start
from foliot.services.settlement.settle_steps import Settling
from foliot.storage.jobs import dependencies, job_types
from foliot.storage.jobs.definitions import Unreadable
from foliot.storage.jobs.job_types import Off
from foliot.storage.queue import new_runs, waiting
from foliot.storage.queue.new_runs import Made

log = logging.getLogger(__name__)

_MOST_LOOKS = 3


async def wake_dependents(settling: Settling) -> None:
    """After the ends are written: evaluate every edge that leads away from them, under the dependents' locks.

    A dependent that cancels what it has for what it gets makes an end of its own, and those behind it are asked in turn.
    """
    told = 0
    while told < len(settling.ended):
        ended, told = tuple(settling.ended[told:]), len(settling.ended)
        await _wake_behind(settling, ended)


async def ask_gates(settling: Settling, job_ids: Sequence[JobId]) -> None:
    """Judge again what waits at the gates of these jobs."""
    whens = {job_id: settling.rows[job_id].rules.spec.depends_when for job_id in job_ids}
    found = await dependencies.facts(settling.tx, whens)
    for job_id, when in whens.items():
        await _Dependent(settling, job_id, found.get(job_id, Dependencies((), when))).ask_gate()


async def cancel_live(settling: Settling, run_id: RunId) -> None:
    """Ask the worker that has it to stop; where no worker has it, it ends at once."""
    for _ in range(_MOST_LOOKS):  # between two looks a worker may claim it
        if await new_runs.request_cancel(settling.tx, [run_id]):
            return
        if await settling.end_standing([run_id], Cancelled()):
            return


async def _wake_behind(settling: Settling, ended: Sequence[tuple[RunFacts, Settlement]]) -> None:
    upstreams = {run.job_id for run, _ in ended if settling.rows[run.job_id].has_dependents}
    if not upstreams:
        return
    whens = {row.job_id: row.rules.spec.depends_when for row in settling.rows.values()}
    off = await job_types.off_among(settling.tx, {row.workspace_id for row in settling.rows.values()})
    for job_id, edges in (await dependencies.facts(settling.tx, whens)).items():
        if any(edge.edge.upstream in upstreams for edge in edges.edges):
            if isinstance(
                settling.rows[job_id].rules, Unreadable
            ):  # its upstream must be able to end all the same
                log.error(
                    "dependent.not_woken", extra={"job": str(job_id), "why": "its rules cannot be read"}
                )
                continue
            dependent = _Dependent(settling, job_id, edges, off)
            if settling.status_of(job_id) is JobStatus.ACTIVE:
                await dependent.wake(ended)
            await dependent.ask_gate()
    await settling.write()


class _Dependent:
    def __init__(
        self, settling: Settling, job_id: JobId, edges: Dependencies, off: Off = frozenset()
    ) -> None:
        self.settling = settling
        self.tx = settling.tx
        self.row = settling.rows[job_id]
        self.job_id = job_id
        self.edges = edges
        self.is_off = bool(off) and (self.row.workspace_id, self.row.rules.spec.type) in off

    async def wake(self, ended: Sequence[tuple[RunFacts, Settlement]]) -> None:
        for run, settlement in ended:
            edges = self._as_of(run.job_id, run.id, settlement.wakes)
            found = triggered(edges, Ended(run.id, self.tx.now))
            if found is not None:
                await self._start(found)

    async def ask_gate(self) -> None:
        for run in await waiting.at_the_gate(self.tx, [self.job_id]):
            verdict = judge_gate(self.edges, self.tx.now)
            if isinstance(verdict, AwaitUpstream):
                continue
            if isinstance(verdict, Closed):
                await self.settling.end_standing([run.run_id], AskedSkip(verdict.reason, verdict.note))
                continue
            await self._consume(verdict.consumes)
            deadline = self.row.rules.spec.limits.start_deadline
            until = None if deadline is None else run.available_at + deadline
            self.settling.is_live(self.job_id, run.run_id)
            await self.settling.release([replace(run, expires_at=until)])

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
        settling, row, now = self.settling, self.row, self.tx.now
        facts = settling.facts_of(self.job_id)
        admission = admit(facts.job.overlap, facts.live, facts.waiting)
        allowed = may_start(facts.job.timetable, max(now, found.not_before))
        run_id = RunId(self.tx.new_id())
        skip, waits_for, at, until = None, None, found.not_before, None
        if self.is_off:
            skip = SkipReason.TYPE_DISABLED
        elif isinstance(allowed, MayNot):
            skip = allowed.reason
        elif admission is Admission.SKIP:
            skip = SkipReason.OVERLAP
        else:
            at, until = allowed.at, allowed.until
            if (deadline := facts.job.limits.start_deadline) is not None:
                until = at + deadline if until is None else min(until, at + deadline)
            if admission is not Admission.START:
                waits_for = WaitsFor.TURN
            elif settling.freeze_of(self.job_id, run_id, Trigger.DEPENDENCY) is not None:
                waits_for = WaitsFor.FREEZE
            elif allowed.closes is not None:
                until = allowed.closes if until is None else min(until, allowed.closes)
        made = Made(
            run_id,
            row.workspace_id,
            self.job_id,
            settling.next_number(self.job_id),
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
        if not await new_runs.make(self.tx, [made]):
            return  # this upstream run has had its run
        await self._consume(found.consumes)
        live_run_id = settling.live_run_of(self.job_id)
        settling.add_run(self.job_id, run_id, waits_for=waits_for, skipped=skip is not None)
        if admission is Admission.CANCEL_AND_WAIT and skip is None and live_run_id is not None:
            await cancel_live(settling, live_run_id)
            await settling.write()

    async def _consume(self, marks: Sequence[Consumed]) -> None:
        await dependencies.consume(self.tx, [(self.job_id, mark) for mark in marks])
        self.edges = consume(self.edges, marks)
