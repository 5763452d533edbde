"""What the ends of runs mean for the jobs that depend on theirs: new runs by trigger, an answer for those waiting at a gate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from foliot.domain.admission import Skip, StartRequest, Wait, admit
from foliot.domain.dependencies import (
    ConsumedRun,
    Dependencies,
    EdgeCondition,
    TriggeredRun,
    UpstreamEnd,
    consume,
    find_triggered_run,
)
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import Cancelled
from foliot.domain.run import RunFacts, Trigger
from foliot.domain.run_end import Settlement
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.jobs import dependencies, job_types
from foliot.storage.jobs.definitions import UnreadableRules
from foliot.storage.jobs.job_types import DisabledTypes
from foliot.storage.queue import run_queue, waiting
from foliot.storage.queue.run_queue import UnscheduledRun

log = logging.getLogger(__name__)

_MOST_LOOKS = 3


async def wake_dependents(settling: SettlementWriter) -> None:
    """After the ends are written: evaluate every edge that leads away from them, under the dependents' locks.

    A dependent that cancels what it has for what it gets makes an end of its own, and those behind it are asked in turn.
    """
    told = 0
    while told < len(settling.ended):
        ended, told = tuple(settling.ended[told:]), len(settling.ended)
        await _wake_behind(settling, ended)


async def judge_gates_of(settling: SettlementWriter, job_ids: Sequence[JobId]) -> None:
    """Judge again the runs that wait at the gates of these jobs."""
    whens = {job_id: settling.rows[job_id].rules.spec.depends_when for job_id in job_ids}
    found = await dependencies.facts(settling.tx, whens)
    for job_id, when in whens.items():
        await _ask_gate(settling, job_id, found.get(job_id, Dependencies((), when)))


async def cancel_live(settling: SettlementWriter, run_id: RunId) -> None:
    """Ask the worker that has it to stop; where no worker has it, it ends at once."""
    for _ in range(_MOST_LOOKS):  # between two looks a worker may claim it
        if await run_queue.request_cancel(settling.tx, [run_id]):
            return
        if await settling.end_standing([run_id], Cancelled()):
            return


async def _wake_behind(settling: SettlementWriter, ended: Sequence[tuple[RunFacts, Settlement]]) -> None:
    upstreams = {run.job_id for run, _ in ended if settling.rows[run.job_id].has_dependents}
    if not upstreams:
        return
    whens = {row.job_id: row.rules.spec.depends_when for row in settling.rows.values()}
    off = await job_types.disabled_in(settling.tx, {row.workspace_id for row in settling.rows.values()})
    for job_id, edges in (await dependencies.facts(settling.tx, whens)).items():
        if any(edge.edge.upstream in upstreams for edge in edges.edges):
            if isinstance(
                settling.rows[job_id].rules, UnreadableRules
            ):  # its upstream must be able to end all the same
                log.error(
                    "dependent.not_woken", extra={"job": str(job_id), "why": "its rules cannot be read"}
                )
                continue
            dependent = _Dependent(settling, job_id, edges, off)
            if settling.job(job_id).state.status is JobStatus.ACTIVE:
                await dependent.wake(ended)
            await _ask_gate(settling, job_id, dependent.edges)
    await settling.write()


async def _ask_gate(settling: SettlementWriter, job_id: JobId, edges: Dependencies) -> None:
    await settling.release(await waiting.at_gate(settling.tx, job_id), {job_id: edges})


class _Dependent:
    def __init__(
        self, settling: SettlementWriter, job_id: JobId, edges: Dependencies, off: DisabledTypes = frozenset()
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
            found = find_triggered_run(edges, UpstreamEnd(run.id, self.tx.now))
            if found is not None:
                await self._start(found)

    def _as_of(self, upstream: JobId, run_id: RunId, wakes: tuple[EdgeCondition, ...]) -> Dependencies:
        """The edges as this very end leaves them, though a later one of the same batch may be the newest."""
        ended = UpstreamEnd(run_id, self.tx.now)
        edges = (
            replace(facts, latest=ended)
            if facts.edge.upstream == upstream and facts.edge.on in wakes
            else facts
            for facts in self.edges.edges
        )
        return replace(self.edges, edges=tuple(edges))

    async def _start(self, found: TriggeredRun) -> None:
        settling, row, now = self.settling, self.row, self.tx.now
        dependent, run_id = settling.job(self.job_id), RunId(self.tx.new_id())
        job, load = dependent.state.job, dependent.state.load
        request = StartRequest(
            job,
            now,
            Trigger.DEPENDENCY,
            not_before=found.not_before,
            start_within=job.limits.start_deadline,
            load=load,
            is_frozen=settling.around.is_frozen(row, run_id, Trigger.DEPENDENCY, now),
            is_type_off=self.is_off,
        )
        answer = admit(request)
        made = UnscheduledRun(
            run_id,
            row.workspace_id,
            self.job_id,
            dependent.next_number(),
            row.schedule_rev,
            row.rules,
            Trigger.DEPENDENCY,
            found.not_before,
            found.not_before,
            upstream_run_id=found.upstream_run_id,
        ).admitted(answer)
        if not await run_queue.insert_runs(self.tx, [made]):
            return  # this upstream run has had its run
        await self._consume(found.consumes)
        live_run_id = dependent.live_run_id
        if isinstance(answer, Skip):
            dependent.add_skip()
            return
        dependent.add_run(run_id, made.waits_for)
        if isinstance(answer, Wait) and answer.cancels_live and live_run_id is not None:
            await cancel_live(settling, live_run_id)
            await settling.write()

    async def _consume(self, marks: Sequence[ConsumedRun]) -> None:
        await dependencies.consume(self.tx, [(self.job_id, mark) for mark in marks])
        self.edges = consume(self.edges, marks)
