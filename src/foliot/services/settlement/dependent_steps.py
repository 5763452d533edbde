"""Wake the jobs that depend on ended runs: start triggered runs, and judge again the runs that wait at a gate.

Why: docs/decisions/205-dependencies.md
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from foliot.domain.admission import Skip, StartRequest, Wait, admit
from foliot.domain.dependencies import (
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
from foliot.storage.queue import run_queue, unclaimed_runs
from foliot.storage.queue.run_queue import UnscheduledRun

log = logging.getLogger(__name__)

_ATTEMPTS = 3


async def finish_settlement(writer: SettlementWriter) -> None:
    """Write all decisions, wake dependents, and give permits back."""
    await writer.write()
    await wake_dependents(writer)
    await writer.give_back_permits()


async def wake_dependents(writer: SettlementWriter) -> None:
    """Evaluate every edge that leads away from the ended runs, under the dependents' locks. Call it once the ends are written.

    A dependent that cancels its live run for the new one ends a run as well, and wakes its own dependents in turn.
    """
    woken = 0
    while woken < len(writer.ended):
        ended, woken = tuple(writer.ended[woken:]), len(writer.ended)
        upstreams = {run.job_id for run, _ in ended if writer.rows[run.job_id].has_dependents}
        if upstreams:
            await _wake(writer, upstreams, ended)


async def judge_gates_of(writer: SettlementWriter, job_ids: Sequence[JobId]) -> None:
    """Judge again the runs that wait at the gates of these jobs."""
    rules = {job_id: writer.rows[job_id].rules.spec.depends_when for job_id in job_ids}
    found = await dependencies.load_facts(writer.tx, rules)
    for job_id, rule in rules.items():
        await _judge_gate(writer, job_id, found.get(job_id, Dependencies((), rule)))


async def cancel_live(writer: SettlementWriter, run_id: RunId) -> None:
    """Ask the worker that has the run to stop it, or end it where no worker has it."""
    for _ in range(_ATTEMPTS):  # between two attempts a worker may claim it
        if await run_queue.request_cancel(writer.tx, [run_id]):
            return
        if await writer.end_unclaimed([run_id], Cancelled()):
            return


async def _wake(
    writer: SettlementWriter, upstreams: set[JobId], ended: Sequence[tuple[RunFacts, Settlement]]
) -> None:
    rules = {row.job_id: row.rules.spec.depends_when for row in writer.rows.values()}
    off = await job_types.disabled_in(writer.tx, {row.workspace_id for row in writer.rows.values()})
    for job_id, edges in (await dependencies.load_facts(writer.tx, rules)).items():
        if not any(each.edge.upstream in upstreams for each in edges.edges):
            continue
        if isinstance(writer.rows[job_id].rules, UnreadableRules):  # the upstream run must end all the same
            log.error("dependent.not_woken", extra={"job": str(job_id), "why": "its rules cannot be read"})
            continue
        dependent = _Dependent(writer, job_id, edges, off)
        if writer.job(job_id).state.status is JobStatus.ACTIVE:
            for run, settlement in ended:
                await dependent.trigger(run, settlement.wakes)
        await _judge_gate(writer, job_id, dependent.edges)
    await writer.write()


async def _judge_gate(writer: SettlementWriter, job_id: JobId, edges: Dependencies) -> None:
    await writer.release(await unclaimed_runs.at_gate(writer.tx, job_id), {job_id: edges})


class _Dependent:
    def __init__(
        self, writer: SettlementWriter, job_id: JobId, edges: Dependencies, off: DisabledTypes
    ) -> None:
        self.writer = writer
        self.tx = writer.tx
        self.row = writer.rows[job_id]
        self.edges = edges
        self.is_type_off = bool(off) and (self.row.workspace_id, self.row.rules.spec.type) in off

    async def trigger(self, upstream: RunFacts, wakes: tuple[EdgeCondition, ...]) -> None:
        """Start a run where this end of an upstream run satisfies the edges."""
        end = UpstreamEnd(upstream.id, self.tx.now)
        # The edges right after this end: a later end of the same batch may be the newest.
        edges = tuple(
            replace(each, latest=end)
            if each.edge.upstream == upstream.job_id and each.edge.on in wakes
            else each
            for each in self.edges.edges
        )
        found = find_triggered_run(replace(self.edges, edges=edges), end)
        if found is not None:
            await self._start(found)

    async def _start(self, found: TriggeredRun) -> None:
        writer, row, now = self.writer, self.row, self.tx.now
        dependent, run_id = writer.job(row.job_id), RunId(self.tx.new_id())
        job = dependent.state.job
        request = StartRequest(
            job,
            now,
            Trigger.DEPENDENCY,
            not_before=found.not_before,
            start_within=job.limits.start_deadline,
            load=dependent.state.load,
            is_frozen=writer.context.is_frozen(row, run_id, Trigger.DEPENDENCY, now),
            is_type_off=self.is_type_off,
        )
        answer = admit(request)
        run = UnscheduledRun(
            run_id,
            row.workspace_id,
            row.job_id,
            dependent.next_number(),
            row.schedule_rev,
            row.rules,
            Trigger.DEPENDENCY,
            found.not_before,
            found.not_before,
            upstream_run_id=found.upstream_run_id,
        ).admitted(answer)
        if not await run_queue.insert_runs(self.tx, [run]):
            return  # this upstream run has started the dependent before
        await dependencies.consume(self.tx, [(row.job_id, mark) for mark in found.consumes])
        self.edges = consume(self.edges, found.consumes)
        if isinstance(answer, Skip):
            dependent.add_skip()
            return
        live_run_id = dependent.live_run_id
        dependent.add_run(run_id, run.waits_for)
        if isinstance(answer, Wait) and answer.cancels_live and live_run_id is not None:
            await cancel_live(writer, live_run_id)
            await writer.write()
