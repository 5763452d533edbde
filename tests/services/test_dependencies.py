"""Jobs that wait for other jobs, from an upstream's end to the dependent's run."""

from __future__ import annotations

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
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.jobs.dependency_steps import release_upstream
from foliot.services.settlement.dependent_steps import wake_dependents
from foliot.services.settlement.expiry import expire_runs, judge_gates
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.timers import timers
from foliot.storage.tx import Role
from foliot.testing.fixtures import TEST
from tests.services.edges import set_edges
from tests.services.staging import BROKE_FOR_GOOD, MANUAL, Stage

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NO_RETRY = Retry(max=0)
NO_FRESH_DATA = ("skipped", "dependency_failed", "no fresh data")


def gate(upstream: JobId, max_age: timedelta | None = None) -> Edge:
    return Edge(upstream, mode=EdgeMode.GATE, max_age=max_age)


async def detach(stage: Stage, job_id: JobId, *, detach: bool) -> None:
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        await release_upstream(tx, job_id, Scope(stage.workspace, TEST), detach=detach)


async def test_a_success_starts_the_dependent_after_its_delay_and_once(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync, delay=30 * MINUTE)])
    run_id = await stage.end(sync)
    assert stage.runs(after, "trigger, upstream_run_id, planned_for, status") == [
        ("dependency", run_id, stage.clock.now() + 30 * MINUTE, None)
    ]
    assert await stage.claim() == []
    stage.clock.advance(30 * MINUTE)
    assert await stage.run_once() == [after]
    assert stage.runs(after, "status") == [("succeeded",)]
    assert stage.timer(after, "live, waiting, run_count") == (0, 0, 1)


async def test_a_failure_starts_those_that_wait_for_failure_or_for_any_end(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    good = await stage.job("good", MANUAL, [Edge(sync, EdgeCondition.SUCCESS)])
    bad = await stage.job("bad", MANUAL, [Edge(sync, EdgeCondition.FAILURE)])
    any_end = await stage.job("any", MANUAL, [Edge(sync, EdgeCondition.ANY)])
    await stage.end(sync, BROKE_FOR_GOOD)
    assert sorted(await stage.run_once()) == sorted([bad, any_end])
    await stage.end(sync)
    assert sorted(await stage.run_once()) == sorted([good, any_end])
    await stage.end(sync, Cancelled())
    assert await stage.run_once() == [any_end]


async def test_a_skipped_upstream_starts_nothing(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    await stage.job("any", MANUAL, [Edge(sync, EdgeCondition.ANY)])
    await stage.end(sync, AskedSkip(SkipReason.OPERATOR))
    assert await stage.claim() == []


async def test_runs_cancelled_before_they_began_are_ends_of_which_each_triggers(stage: Stage) -> None:
    concurrent = Overlap(OverlapRule.CONCURRENT)
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync, EdgeCondition.ANY)], overlap=concurrent)
    runs = [await stage.by_hand(sync), await stage.by_hand(sync)]
    async with stage.database.tx(Role.ENGINE) as tx:  # together, so that only one of them can be the newest
        rows = await timers.lock_with_dependents(tx, [sync])
        writer = SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))
        assert await writer.end_unclaimed(runs, Cancelled()) == set(runs)
        await writer.write()
        await wake_dependents(writer)
    assert stage.runs(sync, "status, attempt_count") == [("cancelled", 0)] * 2
    assert sorted(stage.runs(after, "upstream_run_id")) == sorted((run_id,) for run_id in runs)


async def test_a_retry_that_a_triggered_run_puts_an_end_to_triggers_those_behind_it(stage: Stage) -> None:
    """Far down a chain, too: each link cancels what stands of the next."""
    replaced = Overlap(OverlapRule.CANCEL_RUNNING)
    first = await stage.job("first", MANUAL)
    second = await stage.job("second", MANUAL, [Edge(first, EdgeCondition.ANY)], overlap=replaced)
    third = await stage.job("third", MANUAL, [Edge(second, EdgeCondition.ANY)], overlap=replaced)
    fourth = await stage.job("fourth", MANUAL, [Edge(third, EdgeCondition.ANY)])
    for job_id in (second, third):  # one attempt each, and an hour to wait for the next
        await stage.by_hand(job_id)
        [mine] = await stage.claim()
        assert await stage.report(mine, AskedRetry(HOUR))
    stage.clock.advance(MINUTE)
    await stage.end(first)
    assert stage.runs(second, "status, attempt_count") == [("cancelled", 1), (None, 0)]
    assert stage.runs(third, "status, attempt_count") == [("cancelled", 1), (None, 0)]
    [(stopped, _), _] = stage.runs(third, "id, number")
    assert stage.runs(fourth, "status, upstream_run_id") == [(None, stopped)]


async def test_a_join_of_all_starts_once_per_run_that_completes_it(stage: Stage) -> None:
    left, right = await stage.job("left", MANUAL), await stage.job("right", MANUAL)
    both = await stage.job("both", MANUAL, [Edge(left), Edge(right)])
    await stage.end(left)
    await stage.end(left)
    assert stage.runs(both) == []
    completing = await stage.end(right)
    assert stage.runs(both, "upstream_run_id") == [(completing,)]
    assert await stage.run_once() == [both]
    await stage.end(right)
    assert await stage.claim() == []  # what the left one did is used up
    completing = await stage.end(left)
    assert stage.runs(both, "upstream_run_id")[1:] == [(completing,)]


async def test_a_join_of_any_starts_with_each(stage: Stage) -> None:
    left, right = await stage.job("left", MANUAL), await stage.job("right", MANUAL)
    either = await stage.job("either", MANUAL, [Edge(left), Edge(right)], depends_when=JoinRule.ANY)
    for upstream in (left, right, right):
        await stage.end(upstream)
        assert await stage.run_once() == [either]


async def test_a_new_trigger_does_not_use_what_was_before_it(stage: Stage) -> None:
    left, right = await stage.job("left", MANUAL), await stage.job("right", MANUAL)
    await stage.end(left)
    both = await stage.job("both", MANUAL, [Edge(left), Edge(right)])
    await stage.end(right)
    assert stage.runs(both) == []


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
    stage: Stage, rule: OverlapRule, states: list[tuple[str | None, str | None]]
) -> None:
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync, delay=HOUR)], overlap=Overlap(rule))
    await stage.end(sync)
    await stage.end(sync)
    assert stage.runs(after, "status, skip_reason") == states
    live, waiting = stage.timer(after, "live, waiting")
    assert (live, waiting) == {
        OverlapRule.QUEUE: (1, 1),
        OverlapRule.CONCURRENT: (2, 0),
    }.get(rule, (1, 0))
    stage.clock.advance(HOUR)
    assert await stage.run_once() == [after] * live
    assert await stage.run_once() == [after] * waiting
    assert stage.timer(after, "live, waiting") == (0, 0)


async def test_ends_of_upstream_and_dependent_in_one_batch_do_not_collide(stage: Stage) -> None:
    """The dependent's own run ends in the same transaction as the upstream's: it is not in the way of the next."""
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync)])
    await stage.end(sync)
    await stage.by_hand(sync)
    claimed = await stage.claim()
    assert {each.job_id for each in claimed} == {sync, after}
    claimed.sort(key=lambda each: each.job_id == sync)
    done = [Report(each.run_id, each.job_id, each.fence, stage.worker, Succeeded()) for each in claimed]
    assert len(await report(stage.database, done)) == 2
    assert stage.runs(after, "status, skip_reason") == [("succeeded", None), (None, None)]


async def test_an_open_gate_lets_one_run_through_per_fresh_success(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)])
    await stage.end(sync)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await stage.run_once() == [daily]
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.runs(daily) == [("succeeded", None, None), NO_FRESH_DATA]


async def test_a_gate_whose_upstream_never_ran_is_closed(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)])
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.runs(daily, "status, skip_reason") == [("skipped", "dependency_missing")]


async def test_data_that_is_too_old_does_not_open_a_gate(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync, 30 * MINUTE)])
    await stage.end(sync)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.runs(daily) == [NO_FRESH_DATA]


@pytest.mark.parametrize("succeeds", [True, False])
async def test_a_run_waits_at_its_gate_for_a_live_upstream(stage: Stage, succeeds: bool) -> None:
    sync = await stage.job("sync", MANUAL, retry=NO_RETRY)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)])
    await stage.end(sync, BROKE_FOR_GOOD)
    stage.clock.advance(HOUR)
    await stage.by_hand(sync)
    await stage.tick()
    assert stage.waits() == [(daily, "upstream")]
    [upstream] = await stage.claim()
    stage.clock.advance(10 * MINUTE)
    await stage.report(upstream, None if succeeds else BROKE_FOR_GOOD)
    assert stage.waits() == []
    assert await stage.run_once() == ([daily] if succeeds else [])
    assert stage.runs(daily) == ([("succeeded", None, None)] if succeeds else [NO_FRESH_DATA])
    assert stage.timer(daily, "live, waiting, live_until") == (0, 0, None)


async def test_a_gate_waits_no_longer_than_to_the_next_planned_time(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)])
    stage.clock.advance(HOUR)
    await stage.by_hand(sync)
    await stage.tick()
    [upstream] = await stage.claim()
    stage.clock.advance(HOUR)
    await stage.tick()
    ended = ("skipped", "dependency_failed", "the upstream job did not end in time")
    assert stage.runs(daily) == [ended, (None, None, None)]
    assert stage.waits() == [(daily, "upstream")]
    await stage.report(upstream)
    assert await stage.run_once() == [daily]


async def test_the_sweeper_ends_a_wait_that_no_tick_ended(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)])
    stage.clock.advance(HOUR)
    await stage.by_hand(sync)
    await stage.tick()
    await stage.claim()
    stage.clock.advance(HOUR)
    assert await expire_runs(stage.database) == 1
    assert stage.runs(daily)[0][:2] == ("skipped", "dependency_failed")
    assert await expire_runs(stage.database) == 0
    assert stage.timer(daily, "live, live_until") == (0, None)


async def test_a_gated_run_in_line_asks_its_gate_when_its_turn_comes(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)], overlap=Overlap(OverlapRule.QUEUE))
    await stage.end(sync)
    stage.clock.advance(HOUR)
    await stage.tick()
    [slow] = await stage.claim()
    stage.clock.advance(MINUTE)
    await stage.by_hand(sync)  # the upstream is live when the next time comes
    [upstream] = await stage.claim()
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.waits() == [(daily, "turn")]
    await stage.report(slow)
    assert stage.waits() == [(daily, "upstream")]
    await stage.report(upstream)
    assert await stage.run_once() == [daily]
    assert stage.runs(daily, "status") == [("succeeded",), ("succeeded",)]


async def test_a_chain_of_gates_falls_together(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    middle = await stage.job("middle", Interval(HOUR), [gate(sync)])
    stage.clock.advance(5 * MINUTE)
    last = await stage.job("last", Interval(HOUR), [gate(middle)])
    stage.clock.advance(55 * MINUTE)
    await stage.by_hand(sync)
    [upstream] = await stage.claim()
    await stage.tick()
    stage.clock.advance(5 * MINUTE)
    await stage.tick()
    assert stage.waits() == [(middle, "upstream"), (last, "upstream")]
    await stage.report(upstream, BROKE_FOR_GOOD)
    assert stage.runs(middle) == [NO_FRESH_DATA]
    assert await judge_gates(stage.database) == 1
    assert stage.runs(last, "status, skip_reason") == [("skipped", "dependency_missing")]
    assert await judge_gates(stage.database) == 0


async def test_edges_that_would_close_a_circle_are_refused_by_name(stage: Stage) -> None:
    first = await stage.job("first", MANUAL)
    second = await stage.job("second", MANUAL, [Edge(first)])
    third = await stage.job("third", MANUAL, [Edge(second)])
    with pytest.raises(Invalid, match='"first" → "third"'):
        await set_edges(stage.database, stage.workspace, first, [Edge(third)], TEST)
    assert stage.timer(first, "has_dependents, has_gate") == (True, False)
    assert stage.timer(third, "has_dependents") == (False,)


async def test_edges_say_what_is_wrong_with_them(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    cron = await stage.job("cron", Cron("0 6 * * *"))
    for job, edges, words in (
        (cron, [Edge(sync)], "no schedule of its own"),
        (sync, [Edge(sync)], "itself"),
        (sync, [Edge(JobId(uuid4()))], "no such job"),
    ):
        with pytest.raises(Invalid, match=words):
            await set_edges(stage.database, stage.workspace, job, edges, TEST)
    with pytest.raises(NotFound):
        await set_edges(stage.database, stage.workspace, JobId(uuid4()), [], TEST)


async def test_replacing_edges_keeps_the_marks_and_what_timers_know(stage: Stage) -> None:
    left, right = await stage.job("left", MANUAL), await stage.job("right", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(left)])
    assert stage.timer(daily, "has_gate") == (True,)
    await stage.end(left)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await stage.run_once() == [daily]
    await set_edges(
        stage.database, stage.workspace, daily, [gate(left), gate(right)], TEST, when=JoinRule.ANY
    )
    assert stage.timer(right, "has_dependents") == (True,)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.runs(daily, "status") == [("succeeded",), ("skipped",)]
    await set_edges(stage.database, stage.workspace, daily, [], TEST)
    assert stage.timer(daily, "has_gate") == (False,)
    assert stage.timer(left, "has_dependents") == (False,)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await stage.run_once() == [daily]


async def test_a_gate_that_is_taken_away_lets_go_who_waits_at_it(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    daily = await stage.job("report", Interval(HOUR), [gate(sync)])
    stage.clock.advance(HOUR)
    await stage.by_hand(sync)
    await stage.tick()
    await stage.claim()
    await set_edges(stage.database, stage.workspace, daily, [], TEST)
    assert stage.waits() == []
    assert await stage.run_once() == [daily]


async def test_an_upstream_is_not_deleted_from_under_its_dependents(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync)])
    with pytest.raises(Conflict, match='"after"'):
        await detach(stage, sync, detach=False)
    await detach(stage, sync, detach=True)
    assert stage.timer(sync, "has_dependents") == (False,)
    definition = stage.owner.execute(
        "SELECT definition -> 'depends_on', revision FROM foliot.jobs WHERE id = %s", [after]
    )
    assert definition.fetchall() == [(None, 2)]
    await detach(stage, sync, detach=False)


async def test_a_dependent_on_hold_is_not_started(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync)])
    stage.owner.execute("UPDATE foliot.timers SET status = 'paused' WHERE job_id = %s", [after])
    await stage.end(sync)
    assert stage.runs(after) == []
