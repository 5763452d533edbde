"""Jobs that wait for other jobs, from an upstream's end to the dependent's run."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge, EdgeCondition, EdgeMode, JoinRule
from foliot.domain.errors import Conflict, Invalid, NotFound
from foliot.domain.ids import JobId
from foliot.domain.outcomes import AskedRetry, AskedSkip, Cancelled, Succeeded
from foliot.domain.policy import Overlap, OverlapRule, Retry
from foliot.domain.schedule import Cron, Interval, SkipReason
from foliot.sdk.context import Context, Upstream
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.jobs.dependency_steps import release_upstream
from foliot.services.settlement.dependent_steps import wake_dependents
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.services.settlement.waiting_runs import expire_runs, judge_gates
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, claim_work
from foliot.storage.timers import timers
from foliot.storage.tx import Role
from foliot.testing.fixtures import TEST
from tests.services.edges import set_edges
from tests.services.workspace_harness import BROKE_FOR_GOOD, MANUAL, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NO_RETRY = Retry(max=0)
NO_FRESH_DATA = ("skipped", "dependency_failed", "no fresh data")


def gate(upstream: JobId, max_age: timedelta | None = None) -> Edge:
    return Edge(upstream, mode=EdgeMode.GATE, max_age=max_age)


async def detach(harness: WorkspaceHarness, job_id: JobId, *, detach: bool) -> None:
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        await release_upstream(tx, job_id, Scope(harness.workspace, TEST), detach=detach)


@pytest.mark.requirement("C-18", "S1-EC-2", "S1-FR-005", "S1-SC-006", "S1-US3.1", "S1-US3.T")
async def test_a_success_starts_the_dependent_after_its_delay_and_once(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync, delay=30 * MINUTE)])
    run_id = await harness.end(sync)
    assert harness.runs(after, "trigger, upstream_run_id, planned_for, status") == [
        ("dependency", run_id, harness.clock.now() + 30 * MINUTE, None)
    ]
    assert await harness.claim() == []
    harness.clock.advance(30 * MINUTE)
    assert await harness.run_once() == [after]
    assert harness.runs(after, "status") == [("succeeded",)]
    assert harness.timer(after, "live, waiting, run_count") == (0, 0, 1)


async def test_a_failure_starts_those_that_wait_for_failure_or_for_any_end(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    good = await harness.job("good", MANUAL, [Edge(sync, EdgeCondition.SUCCESS)])
    bad = await harness.job("bad", MANUAL, [Edge(sync, EdgeCondition.FAILURE)])
    any_end = await harness.job("any", MANUAL, [Edge(sync, EdgeCondition.ANY)])
    await harness.end(sync, BROKE_FOR_GOOD)
    assert sorted(await harness.run_once()) == sorted([bad, any_end])
    await harness.end(sync)
    assert sorted(await harness.run_once()) == sorted([good, any_end])
    await harness.end(sync, Cancelled())
    assert await harness.run_once() == [any_end]


async def test_a_skipped_upstream_starts_nothing(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    await harness.job("any", MANUAL, [Edge(sync, EdgeCondition.ANY)])
    await harness.end(sync, AskedSkip(SkipReason.OPERATOR))
    assert await harness.claim() == []


async def test_runs_cancelled_before_they_began_are_ends_of_which_each_triggers(
    harness: WorkspaceHarness,
) -> None:
    concurrent = Overlap(OverlapRule.CONCURRENT)
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync, EdgeCondition.ANY)], overlap=concurrent)
    runs = [await harness.run_manually(sync), await harness.run_manually(sync)]
    async with harness.database.tx(Role.ENGINE) as tx:  # together, so that only one of them can be the newest
        rows = await timers.lock_with_dependents(tx, [sync])
        writer = SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))
        assert await writer.end_unclaimed(runs, Cancelled()) == set(runs)
        await writer.write()
        await wake_dependents(writer)
    assert harness.runs(sync, "status, attempt_count") == [("cancelled", 0)] * 2
    assert sorted(harness.runs(after, "upstream_run_id")) == sorted((run_id,) for run_id in runs)


async def test_a_retry_that_a_triggered_run_puts_an_end_to_triggers_those_behind_it(
    harness: WorkspaceHarness,
) -> None:
    """Far down a chain, too: each link cancels what stands of the next."""
    replaced = Overlap(OverlapRule.CANCEL_RUNNING)
    first = await harness.job("first", MANUAL)
    second = await harness.job("second", MANUAL, [Edge(first, EdgeCondition.ANY)], overlap=replaced)
    third = await harness.job("third", MANUAL, [Edge(second, EdgeCondition.ANY)], overlap=replaced)
    fourth = await harness.job("fourth", MANUAL, [Edge(third, EdgeCondition.ANY)])
    for job_id in (second, third):  # one attempt each, and an hour to wait for the next
        await harness.run_manually(job_id)
        [mine] = await harness.claim()
        assert await harness.report(mine, AskedRetry(HOUR))
    harness.clock.advance(MINUTE)
    await harness.end(first)
    assert harness.runs(second, "status, attempt_count") == [("cancelled", 1), (None, 0)]
    assert harness.runs(third, "status, attempt_count") == [("cancelled", 1), (None, 0)]
    [(stopped, _), _] = harness.runs(third, "id, number")
    assert harness.runs(fourth, "status, upstream_run_id") == [(None, stopped)]


async def test_a_join_of_all_starts_once_per_run_that_completes_it(harness: WorkspaceHarness) -> None:
    left, right = await harness.job("left", MANUAL), await harness.job("right", MANUAL)
    both = await harness.job("both", MANUAL, [Edge(left), Edge(right)])
    await harness.end(left)
    await harness.end(left)
    assert harness.runs(both) == []
    completing = await harness.end(right)
    assert harness.runs(both, "upstream_run_id") == [(completing,)]
    assert await harness.run_once() == [both]
    await harness.end(right)
    assert await harness.claim() == []  # what the left one did is used up
    completing = await harness.end(left)
    assert harness.runs(both, "upstream_run_id")[1:] == [(completing,)]


async def test_a_join_of_any_starts_with_each(harness: WorkspaceHarness) -> None:
    left, right = await harness.job("left", MANUAL), await harness.job("right", MANUAL)
    either = await harness.job("either", MANUAL, [Edge(left), Edge(right)], depends_when=JoinRule.ANY)
    for upstream in (left, right, right):
        await harness.end(upstream)
        assert await harness.run_once() == [either]


async def test_a_new_trigger_does_not_use_what_was_before_it(harness: WorkspaceHarness) -> None:
    left, right = await harness.job("left", MANUAL), await harness.job("right", MANUAL)
    await harness.end(left)
    both = await harness.job("both", MANUAL, [Edge(left), Edge(right)])
    await harness.end(right)
    assert harness.runs(both) == []


@pytest.mark.parametrize(
    "rule, states",
    [
        (OverlapRule.SKIP, [(None, None), ("skipped", "overlap")]),
        (OverlapRule.QUEUE, [(None, None), (None, None)]),
        (OverlapRule.CONCURRENT, [(None, None), (None, None)]),
        (OverlapRule.CANCEL_RUNNING, [("cancelled", None), (None, None)]),
    ],
)
async def test_a_dependent_follows_its_overlap_policy(
    harness: WorkspaceHarness, rule: OverlapRule, states: list[tuple[str | None, str | None]]
) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync, delay=HOUR)], overlap=Overlap(rule))
    await harness.end(sync)
    await harness.end(sync)
    assert harness.runs(after, "status, skip_reason") == states
    live, waiting = harness.timer(after, "live, waiting")
    assert (live, waiting) == {
        OverlapRule.QUEUE: (1, 1),
        OverlapRule.CONCURRENT: (2, 0),
    }.get(rule, (1, 0))
    harness.clock.advance(HOUR)
    assert await harness.run_once() == [after] * live
    assert await harness.run_once() == [after] * waiting
    assert harness.timer(after, "live, waiting") == (0, 0)


async def test_ends_of_upstream_and_dependent_in_one_batch_do_not_collide(harness: WorkspaceHarness) -> None:
    """The dependent's own run ends in the same transaction as the upstream's: it is not in the way of the next."""
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync)])
    await harness.end(sync)
    await harness.run_manually(sync)
    claimed = await harness.claim()
    assert {each.job_id for each in claimed} == {sync, after}
    claimed.sort(key=lambda each: each.job_id == sync)
    done = [Report(each.run_id, each.job_id, each.fence, harness.worker, Succeeded()) for each in claimed]
    assert len(await report(harness.database, done)) == 2
    assert harness.runs(after, "status, skip_reason") == [("succeeded", None), (None, None)]


@pytest.mark.requirement("S1-US3.3")
async def test_an_open_gate_lets_one_run_through_per_fresh_success(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)])
    await harness.end(sync)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await harness.run_once() == [daily]
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.runs(daily) == [("succeeded", None, None), NO_FRESH_DATA]


async def test_a_gate_whose_upstream_never_ran_is_closed(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)])
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.runs(daily, "status, skip_reason") == [("skipped", "dependency_missing")]


async def test_data_that_is_too_old_does_not_open_a_gate(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync, 30 * MINUTE)])
    await harness.end(sync)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.runs(daily) == [NO_FRESH_DATA]


@pytest.mark.parametrize("succeeds", [True, False])
async def test_a_run_waits_at_its_gate_for_a_live_upstream(harness: WorkspaceHarness, succeeds: bool) -> None:
    sync = await harness.job("sync", MANUAL, retry=NO_RETRY)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)])
    await harness.end(sync, BROKE_FOR_GOOD)
    harness.clock.advance(HOUR)
    await harness.run_manually(sync)
    await harness.tick()
    assert harness.waits() == [(daily, "upstream")]
    [upstream] = await harness.claim()
    harness.clock.advance(10 * MINUTE)
    await harness.report(upstream, None if succeeds else BROKE_FOR_GOOD)
    assert harness.waits() == []
    assert await harness.run_once() == ([daily] if succeeds else [])
    assert harness.runs(daily) == ([("succeeded", None, None)] if succeeds else [NO_FRESH_DATA])
    assert harness.timer(daily, "live, waiting, live_until") == (0, 0, None)


async def test_a_gate_waits_no_longer_than_to_the_next_planned_time(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)])
    harness.clock.advance(HOUR)
    await harness.run_manually(sync)
    await harness.tick()
    [upstream] = await harness.claim()
    harness.clock.advance(HOUR)
    await harness.tick()
    ended = ("skipped", "dependency_failed", "the upstream job did not end in time")
    assert harness.runs(daily) == [ended, (None, None, None)]
    assert harness.waits() == [(daily, "upstream")]
    await harness.report(upstream)
    assert await harness.run_once() == [daily]


async def test_the_sweeper_ends_a_wait_that_no_tick_ended(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)])
    harness.clock.advance(HOUR)
    await harness.run_manually(sync)
    await harness.tick()
    await harness.claim()
    harness.clock.advance(HOUR)
    assert await expire_runs(harness.database) == 1
    assert harness.runs(daily)[0][:2] == ("skipped", "dependency_failed")
    assert await expire_runs(harness.database) == 0
    assert harness.timer(daily, "live, live_until") == (0, None)


async def test_a_gated_run_in_line_asks_its_gate_when_its_turn_comes(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)], overlap=Overlap(OverlapRule.QUEUE))
    await harness.end(sync)
    harness.clock.advance(HOUR)
    await harness.tick()
    [slow] = await harness.claim()
    harness.clock.advance(MINUTE)
    await harness.run_manually(sync)  # the upstream is live when the next time comes
    [upstream] = await harness.claim()
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.waits() == [(daily, "turn")]
    await harness.report(slow)
    assert harness.waits() == [(daily, "upstream")]
    await harness.report(upstream)
    assert await harness.run_once() == [daily]
    assert harness.runs(daily, "status") == [("succeeded",), ("succeeded",)]


async def test_a_chain_of_gates_falls_together(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    middle = await harness.job("middle", Interval(HOUR), [gate(sync)])
    harness.clock.advance(5 * MINUTE)
    last = await harness.job("last", Interval(HOUR), [gate(middle)])
    harness.clock.advance(55 * MINUTE)
    await harness.run_manually(sync)
    [upstream] = await harness.claim()
    await harness.tick()
    harness.clock.advance(5 * MINUTE)
    await harness.tick()
    assert harness.waits() == [(middle, "upstream"), (last, "upstream")]
    await harness.report(upstream, BROKE_FOR_GOOD)
    assert harness.runs(middle) == [NO_FRESH_DATA]
    assert await judge_gates(harness.database) == 1
    assert harness.runs(last, "status, skip_reason") == [("skipped", "dependency_missing")]
    assert await judge_gates(harness.database) == 0


@pytest.mark.requirement("X-5")
async def test_edges_that_would_close_a_circle_are_refused_by_name(harness: WorkspaceHarness) -> None:
    first = await harness.job("first", MANUAL)
    second = await harness.job("second", MANUAL, [Edge(first)])
    third = await harness.job("third", MANUAL, [Edge(second)])
    with pytest.raises(Invalid, match='"first" → "third"'):
        await set_edges(harness.database, harness.workspace, first, [Edge(third)], TEST)
    assert harness.timer(first, "has_dependents, has_gate") == (True, False)
    assert harness.timer(third, "has_dependents") == (False,)


async def test_edges_say_what_is_wrong_with_them(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    cron = await harness.job("cron", Cron("0 6 * * *"))
    for job, edges, words in (
        (cron, [Edge(sync)], "no schedule of its own"),
        (sync, [Edge(sync)], "itself"),
        (sync, [Edge(JobId(uuid4()))], "no such job"),
    ):
        with pytest.raises(Invalid, match=words):
            await set_edges(harness.database, harness.workspace, job, edges, TEST)
    with pytest.raises(NotFound):
        await set_edges(harness.database, harness.workspace, JobId(uuid4()), [], TEST)


async def test_replacing_edges_keeps_the_marks_and_what_timers_know(harness: WorkspaceHarness) -> None:
    left, right = await harness.job("left", MANUAL), await harness.job("right", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(left)])
    assert harness.timer(daily, "has_gate") == (True,)
    await harness.end(left)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await harness.run_once() == [daily]
    await set_edges(
        harness.database, harness.workspace, daily, [gate(left), gate(right)], TEST, when=JoinRule.ANY
    )
    assert harness.timer(right, "has_dependents") == (True,)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.runs(daily, "status") == [("succeeded",), ("skipped",)]
    await set_edges(harness.database, harness.workspace, daily, [], TEST)
    assert harness.timer(daily, "has_gate") == (False,)
    assert harness.timer(left, "has_dependents") == (False,)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await harness.run_once() == [daily]


async def test_a_gate_that_is_taken_away_lets_go_who_waits_at_it(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    daily = await harness.job("report", Interval(HOUR), [gate(sync)])
    harness.clock.advance(HOUR)
    await harness.run_manually(sync)
    await harness.tick()
    await harness.claim()
    await set_edges(harness.database, harness.workspace, daily, [], TEST)
    assert harness.waits() == []
    assert await harness.run_once() == [daily]


async def test_an_upstream_is_not_deleted_from_under_its_dependents(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync)])
    with pytest.raises(Conflict, match='"after"'):
        await detach(harness, sync, detach=False)
    await detach(harness, sync, detach=True)
    assert harness.timer(sync, "has_dependents") == (False,)
    definition = harness.owner.execute(
        "SELECT definition -> 'depends_on', revision FROM foliot.jobs WHERE id = %s", [after]
    )
    assert definition.fetchall() == [(None, 2)]
    await detach(harness, sync, detach=False)


async def test_a_dependent_on_hold_is_not_started(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync)])
    harness.owner.execute("UPDATE foliot.timers SET status = 'paused' WHERE job_id = %s", [after])
    await harness.end(sync)
    assert harness.runs(after) == []


async def test_the_worker_of_a_dependent_gets_the_output_of_the_run_before_it(
    harness: WorkspaceHarness,
) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync)])
    run_id = await harness.end(sync)
    harness.owner.execute("UPDATE foliot.runs SET output = '[1, 2]' WHERE id = %s", [run_id])
    claimer = Claimer(harness.worker, "default", ["python"], ClaimSize(10), Turns())
    [work] = (await claim_work(harness.database, claimer)).work
    assert work.claimed.job_id == after
    assert work.upstream == {
        "job_id": str(sync),
        "run_id": str(run_id),
        "status": "succeeded",
        "output": [1, 2],
    }
    ctx = Context(
        "w", "j", "job", "r", 1, 1, "dependency", harness.clock.now(), upstream=Upstream(**work.upstream)
    )
    assert Context.of_json(json.loads(json.dumps(ctx.as_json()))) == ctx  # as a child process gets it
