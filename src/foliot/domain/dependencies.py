"""Dependencies between jobs: edges, cycles, triggers when an upstream run ends, and gates at a planned time.

Why: docs/decisions/205-dependencies.md
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import TypeVar

from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import FAILURES, TERMINAL, RunStatus
from foliot.domain.schedule import Manual, Schedule, SkipReason

ZERO = timedelta(0)
NO_FRESH_DATA = "no fresh data"
Node = TypeVar("Node", bound=Hashable)


class EdgeCondition(StrEnum):
    """The outcomes of the upstream run that satisfy the edge. A skipped run never does."""

    SUCCESS = "success"
    FAILURE = "failure"
    ANY = "any"


class EdgeMode(StrEnum):
    TRIGGER = "trigger"  # the end of the upstream run starts a run of this job
    GATE = "gate"  # at its own planned time this job checks whether the upstream has delivered


class JoinRule(StrEnum):
    """The edges that must be satisfied: every one, or any."""

    ALL = "all"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Edge:
    upstream: JobId
    on: EdgeCondition = EdgeCondition.SUCCESS
    mode: EdgeMode = EdgeMode.TRIGGER
    delay: timedelta = ZERO  # trigger only: how long after the upstream's end
    max_age: timedelta | None = None  # gate only: how old the upstream's end may be


@dataclass(frozen=True, slots=True)
class UpstreamEnd:
    """The end of an upstream run."""

    run_id: RunId
    at: datetime


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """The state of one edge under the dependent's timer lock: the newest upstream end that satisfies it, if any."""

    edge: Edge
    latest: UpstreamEnd | None = None
    consumed_run_id: RunId | None = None
    upstream_is_live: bool = False
    upstream_has_run: bool = True  # False while no run of it has ended

    @property
    def fresh(self) -> UpstreamEnd | None:
        return None if self.latest is None or self.latest.run_id == self.consumed_run_id else self.latest


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The edges of one job with the facts that decide them."""

    edges: tuple[EdgeFacts, ...]
    when: JoinRule = JoinRule.ALL


@dataclass(frozen=True, slots=True)
class ConsumedRun:
    """The upstream run that an edge has used: each is used once."""

    upstream: JobId
    run_id: RunId


@dataclass(frozen=True, slots=True)
class TriggeredRun:
    """A run to create. `upstream_run_id` is its identity: the upstream run that completed the join."""

    upstream_run_id: RunId
    not_before: datetime
    consumes: tuple[ConsumedRun, ...]


@dataclass(frozen=True, slots=True)
class GateOpen:
    consumes: tuple[ConsumedRun, ...]


@dataclass(frozen=True, slots=True)
class GateWaits:
    pass


@dataclass(frozen=True, slots=True)
class GateClosed:
    reason: SkipReason
    note: str


GateAnswer = GateOpen | GateWaits | GateClosed


def satisfies(on: EdgeCondition, status: RunStatus) -> bool:
    """Return whether an upstream run with this end satisfies an edge."""
    match on:
        case EdgeCondition.SUCCESS:
            return status is RunStatus.SUCCEEDED
        case EdgeCondition.FAILURE:
            return status in FAILURES
        case EdgeCondition.ANY:
            return status in TERMINAL and status is not RunStatus.SKIPPED


@cache
def satisfied_conditions(status: RunStatus) -> tuple[EdgeCondition, ...]:
    """Return the conditions that this end satisfies, for one query over all dependents."""
    return tuple(on for on in EdgeCondition if satisfies(on, status))


def find_triggered_run(dependencies: Dependencies, settled: UpstreamEnd) -> TriggeredRun | None:
    """Return the run that the end of `settled` starts, if any, after evaluating every trigger edge.

    `settled` must be the `latest` of the edges it satisfies. A consumed upstream run does not satisfy its edge again, so evaluating the
    same settlement twice starts one run.
    """
    edges = [facts for facts in dependencies.edges if facts.edge.mode is EdgeMode.TRIGGER]
    completing = [
        facts for facts in edges if facts.fresh is not None and facts.fresh.run_id == settled.run_id
    ]
    if not completing:
        return None
    used = completing if dependencies.when is JoinRule.ANY else edges
    ends = [(facts, fresh) for facts in used if (fresh := facts.fresh) is not None]
    if len(ends) < len(used):
        return None
    return TriggeredRun(
        upstream_run_id=settled.run_id,
        not_before=max(fresh.at + facts.edge.delay for facts, fresh in ends),
        consumes=tuple(ConsumedRun(facts.edge.upstream, fresh.run_id) for facts, fresh in ends),
    )


def judge_gate(dependencies: Dependencies, now: datetime) -> GateAnswer:
    """Decide at the job's planned time: run, wait for a live upstream run, or skip."""
    gates = [facts for facts in dependencies.edges if facts.edge.mode is EdgeMode.GATE]
    passed = [facts for facts in gates if _is_fresh(facts, now)]
    failed = [facts for facts in gates if facts not in passed]
    is_all = dependencies.when is JoinRule.ALL
    if not failed or (passed and not is_all):
        return GateOpen(
            tuple(ConsumedRun(facts.edge.upstream, facts.latest.run_id) for facts in passed if facts.latest)
        )
    live = [facts.upstream_is_live for facts in failed]
    if all(live) if is_all else any(live):
        return GateWaits()
    missing = [not facts.upstream_has_run for facts in failed]
    if any(missing) if is_all else all(missing):
        return GateClosed(SkipReason.DEPENDENCY_MISSING, "an upstream job has never run")
    return GateClosed(SkipReason.DEPENDENCY_FAILED, NO_FRESH_DATA)


def consume(dependencies: Dependencies, consumed: Iterable[ConsumedRun]) -> Dependencies:
    """Return the facts after a run has consumed these upstream runs."""
    marks = {mark.upstream: mark.run_id for mark in consumed}
    edges = (
        replace(facts, consumed_run_id=marks[facts.edge.upstream]) if facts.edge.upstream in marks else facts
        for facts in dependencies.edges
    )
    return replace(dependencies, edges=tuple(edges))


def check_edges(job: JobId, schedule: Schedule, edges: Sequence[Edge]) -> None:
    """Raise Invalid for edges without meaning. `find_cycle` checks the whole graph."""
    seen: set[JobId] = set()
    for index, edge in enumerate(edges):
        pointer = f"/depends_on/{index}"
        if edge.upstream == job:
            raise Invalid("A job cannot depend on itself.", pointer=f"{pointer}/job")
        if edge.upstream in seen:
            raise Invalid(
                "This upstream job is named twice.",
                pointer=f"{pointer}/job",
                hint="One edge per upstream job.",
            )
        seen.add(edge.upstream)
        if edge.mode is EdgeMode.TRIGGER and not isinstance(schedule, Manual):
            raise Invalid(
                "A job that is triggered by another has no schedule of its own.",
                pointer=f"{pointer}/mode",
                hint='Set schedule.kind to "manual", or use mode "gate" to keep the schedule.',
            )
        if edge.mode is EdgeMode.GATE and isinstance(schedule, Manual):
            raise Invalid(
                "A gate is checked at planned times, and a manual job has none.",
                pointer=f"{pointer}/mode",
                hint='Use mode "trigger".',
            )
        if edge.mode is EdgeMode.GATE and edge.delay:
            raise Invalid("A delay belongs to mode trigger; a gate has max_age.", pointer=f"{pointer}/delay")
        if edge.mode is EdgeMode.TRIGGER and edge.max_age is not None:
            raise Invalid(
                "max_age belongs to mode gate; a trigger has a delay.", pointer=f"{pointer}/max_age"
            )
        if edge.delay < ZERO or (edge.max_age is not None and edge.max_age <= ZERO):
            raise Invalid("A duration must be longer than 0.", pointer=pointer)


def find_cycle(upstreams: Mapping[Node, Sequence[Node]]) -> tuple[Node, ...] | None:
    """Return one cycle in order and closed (a, b, a), or None.

    The walk keeps its own stack: a chain of ten thousand jobs must not reach Python's recursion limit.
    """
    done: set[Node] = set()
    for start in upstreams:
        if start in done:
            continue
        path: list[Node] = [start]
        on_path = {start}
        branches = [iter(upstreams.get(start, ()))]
        while branches:
            node = next(branches[-1], None)
            if node is None:
                branches.pop()
                left = path.pop()
                on_path.discard(left)
                done.add(left)
            elif node in on_path:
                return (*path[path.index(node) :], node)
            elif node not in done:
                path.append(node)
                on_path.add(node)
                branches.append(iter(upstreams.get(node, ())))
    return None


def _is_fresh(facts: EdgeFacts, now: datetime) -> bool:
    fresh, oldest = facts.fresh, facts.edge.max_age
    return fresh is not None and (oldest is None or now - fresh.at <= oldest)
