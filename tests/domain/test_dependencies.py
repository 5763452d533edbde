"""Edges between jobs: cycles, triggers that join, gates."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.dependencies import (
    NO_FRESH_DATA,
    ConsumedRun,
    Dependencies,
    Edge,
    EdgeCondition,
    EdgeFacts,
    EdgeMode,
    GateClosed,
    GateOpen,
    GateWaits,
    JoinRule,
    UpstreamEnd,
    check_edges,
    consume,
    find_cycle,
    find_triggered_run,
    judge_gate,
    satisfied_conditions,
)
from foliot.domain.errors import Invalid
from foliot.domain.lifecycle import RunStatus
from foliot.domain.schedule import Cron, Manual, Schedule, SkipReason
from tests.domain.builders import HOUR, MINUTE, at, job_id, run_id

A, B, C = job_id(1), job_id(2), job_id(3)
NOW = at("08:00")


def trigger(
    upstream: int, *, ended: int | None = None, consumed: int | None = None, delay: int = 0
) -> EdgeFacts:
    return EdgeFacts(
        Edge(job_id(upstream), delay=delay * MINUTE),
        None if ended is None else UpstreamEnd(run_id(ended), NOW),
        None if consumed is None else run_id(consumed),
    )


def gate(
    latest: UpstreamEnd | None = None, *, max_age: int | None = None, live: bool = False, has_run: bool = True
) -> EdgeFacts:
    edge = Edge(A, mode=EdgeMode.GATE, max_age=None if max_age is None else max_age * MINUTE)
    return EdgeFacts(edge, latest, None, live, has_run)


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        (RunStatus.SUCCEEDED, (EdgeCondition.SUCCESS, EdgeCondition.ANY)),
        (RunStatus.FAILED, (EdgeCondition.FAILURE, EdgeCondition.ANY)),
        (RunStatus.TIMED_OUT, (EdgeCondition.FAILURE, EdgeCondition.ANY)),
        (RunStatus.INTERRUPTED, (EdgeCondition.FAILURE, EdgeCondition.ANY)),
        (RunStatus.CANCELLED, (EdgeCondition.ANY,)),
        (RunStatus.SKIPPED, ()),
        (RunStatus.RUNNING, ()),
    ],
)
def test_an_end_satisfies_the_edges_that_ask_for_it_and_a_skip_none(
    status: RunStatus, kinds: tuple[EdgeCondition, ...]
) -> None:
    assert satisfied_conditions(status) == kinds


def test_one_upstream_triggers_its_dependent_after_the_delay_and_once() -> None:
    dependencies = Dependencies((trigger(1, ended=11, delay=30),))
    fired = find_triggered_run(dependencies, UpstreamEnd(run_id(11), NOW))
    assert fired is not None
    assert (fired.upstream_run_id, fired.not_before) == (run_id(11), NOW + 30 * MINUTE)
    assert find_triggered_run(consume(dependencies, fired.consumes), UpstreamEnd(run_id(11), NOW)) is None


def test_a_join_fires_with_the_upstream_run_that_completes_it() -> None:
    waiting = Dependencies((trigger(1, ended=11), trigger(2)))
    assert find_triggered_run(waiting, UpstreamEnd(run_id(11), NOW)) is None
    complete = Dependencies((trigger(1, ended=11), trigger(2, ended=22)))
    fired = find_triggered_run(complete, UpstreamEnd(run_id(22), NOW))
    assert fired is not None
    assert fired.upstream_run_id == run_id(22)
    assert fired.consumes == (ConsumedRun(A, run_id(11)), ConsumedRun(B, run_id(22)))


def test_a_join_waits_for_the_longest_of_its_delays() -> None:
    early = replace(trigger(1, delay=10), latest=UpstreamEnd(run_id(11), NOW - HOUR))
    join = Dependencies((early, trigger(2, ended=22, delay=5)))
    fired = find_triggered_run(join, UpstreamEnd(run_id(22), NOW))
    assert fired is not None
    assert fired.not_before == NOW + 5 * MINUTE


def test_after_a_join_fired_every_upstream_must_end_anew() -> None:
    used = Dependencies((trigger(1, ended=11, consumed=11), trigger(2, ended=23, consumed=22)))
    assert find_triggered_run(used, UpstreamEnd(run_id(23), NOW)) is None
    anew = replace(used, edges=(trigger(1, ended=12, consumed=11), used.edges[1]))
    assert find_triggered_run(anew, UpstreamEnd(run_id(12), NOW)) is not None


def test_where_any_is_enough_each_upstream_fires_alone() -> None:
    either = Dependencies((trigger(1, ended=11, consumed=11), trigger(2, ended=22)), JoinRule.ANY)
    fired = find_triggered_run(either, UpstreamEnd(run_id(22), NOW))
    assert fired is not None
    assert fired.consumes == (ConsumedRun(B, run_id(22)),)


def test_an_end_that_no_edge_asks_for_triggers_nothing() -> None:
    assert find_triggered_run(Dependencies((trigger(1),)), UpstreamEnd(run_id(99), NOW)) is None
    assert (
        find_triggered_run(Dependencies((gate(UpstreamEnd(run_id(5), NOW)),)), UpstreamEnd(run_id(5), NOW))
        is None
    )


FRESH, OLD = UpstreamEnd(run_id(5), NOW - MINUTE), UpstreamEnd(run_id(4), NOW - HOUR)


@pytest.mark.requirement("S1-US3.3")
@pytest.mark.parametrize(
    ("when", "gates", "answer"),
    [
        (JoinRule.ALL, [gate(FRESH)], "open"),
        (JoinRule.ALL, [gate(OLD, max_age=30)], SkipReason.DEPENDENCY_FAILED),
        (JoinRule.ALL, [gate(OLD, max_age=60)], "open"),
        (JoinRule.ALL, [gate(live=True)], "wait"),
        (JoinRule.ALL, [gate(FRESH), gate(live=True)], "wait"),
        (JoinRule.ALL, [gate(FRESH), gate()], SkipReason.DEPENDENCY_FAILED),
        (JoinRule.ALL, [gate(live=True), gate()], SkipReason.DEPENDENCY_FAILED),
        (JoinRule.ALL, [gate(FRESH), gate(has_run=False)], SkipReason.DEPENDENCY_MISSING),
        (JoinRule.ANY, [gate(FRESH), gate()], "open"),
        (JoinRule.ANY, [gate(live=True), gate()], "wait"),
        (JoinRule.ANY, [gate(has_run=False), gate()], SkipReason.DEPENDENCY_FAILED),
        (JoinRule.ANY, [gate(has_run=False), gate(has_run=False)], SkipReason.DEPENDENCY_MISSING),
        (JoinRule.ALL, [], "open"),
    ],
)
def test_a_gate_opens_waits_or_stays_shut(when: JoinRule, gates: list[EdgeFacts], answer: str) -> None:
    match judge_gate(Dependencies(tuple(gates), when), NOW):
        case GateOpen():
            assert answer == "open"
        case GateWaits():
            assert answer == "wait"
        case GateClosed(reason=reason, note=note):
            assert reason == answer
            assert (note == NO_FRESH_DATA) == (reason is SkipReason.DEPENDENCY_FAILED)


@pytest.mark.parametrize(
    ("schedule", "edges", "pointer"),
    [
        (Manual(), [Edge(A)], "/depends_on/0/job"),
        (Manual(), [Edge(B), Edge(B)], "/depends_on/1/job"),
        (Cron("0 7 * * *"), [Edge(B)], "/depends_on/0/mode"),
        (Manual(), [Edge(B, mode=EdgeMode.GATE)], "/depends_on/0/mode"),
        (Cron("0 7 * * *"), [Edge(B, mode=EdgeMode.GATE, delay=MINUTE)], "/depends_on/0/delay"),
        (Manual(), [Edge(B), Edge(C, max_age=MINUTE)], "/depends_on/1/max_age"),
        (Manual(), [Edge(B, delay=-MINUTE)], "/depends_on/0"),
    ],
)
def test_edges_that_mean_nothing_are_refused(schedule: Schedule, edges: list[Edge], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_edges(A, schedule, edges)
    assert refused.value.pointer == pointer


def test_edges_that_mean_something_pass() -> None:
    check_edges(A, Manual(), [Edge(B, delay=30 * MINUTE), Edge(C, EdgeCondition.FAILURE)])
    check_edges(A, Cron("0 7 * * *"), [Edge(B, mode=EdgeMode.GATE, max_age=HOUR)])


def test_a_cycle_is_named_in_order() -> None:
    assert find_cycle({"report": ["sync"], "sync": ["clean"], "clean": ["sync"]}) == ("sync", "clean", "sync")
    assert find_cycle({"a": ["a"]}) == ("a", "a")
    assert find_cycle({"a": ["b", "c"], "b": ["d"], "c": ["d"]}) is None


def test_ten_thousand_jobs_in_a_row_are_no_trouble() -> None:
    chain = {n: [n + 1] for n in range(10_000)}
    assert find_cycle(chain) is None
    cycle = find_cycle(chain | {10_000: [5_000]})
    assert cycle is not None
    assert (len(cycle), cycle[0], cycle[-1]) == (5_002, 5_000, 5_000)


graphs = st.dictionaries(st.integers(0, 12), st.lists(st.integers(0, 12), max_size=4), max_size=13)


@given(graphs)
def test_a_cycle_is_found_exactly_when_the_graph_cannot_be_ordered(graph: dict[int, list[int]]) -> None:
    cycle = find_cycle(graph)
    assert (cycle is None) == can_be_ordered(graph)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert all(after in graph[before] for before, after in itertools.pairwise(cycle))


def can_be_ordered(graph: dict[int, list[int]]) -> bool:
    """Takes away whatever depends on nothing that is left, until nothing is left or nothing moves."""
    left = {node: set(graph.get(node, ())) for node in {*graph, *(n for ns in graph.values() for n in ns)}}
    while free := {node for node, needs in left.items() if not needs & left.keys()}:
        left = {node: needs for node, needs in left.items() if node not in free}
    return not left
