"""A report of a plain success waits for the timer of its job. What its job has become meanwhile is what counts when it goes on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge
from foliot.domain.ids import JobId
from foliot.domain.outcomes import Succeeded
from foliot.domain.schedule import Interval, IntervalMode, Manual
from foliot.services.jobs import jobs
from foliot.services.jobs.job_edits import edit
from foliot.services.jobs.job_status import disable, pause, resume
from foliot.services.runs.run_control import CancelResult, cancel_run, run_now
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import sweep
from foliot.services.workers.claim import Turns, claim
from foliot.services.workers.limits import WHOLE, recount, set_limit
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.fixtures import ANA, BEN
from tests.race.hands import Hands
from tests.services.given import WORKER as OTHER
from tests.services.shop import MINUTE, Shop, definition

pytestmark = pytest.mark.anyio


async def tell(node: Database, shop: Shop, *runs: Claimed) -> int:
    done = [Report(run.run_id, run.job_id, run.fence, shop.worker, Succeeded()) for run in runs]
    return len(await report(node, done))


async def running(shop: Shop, **spec: Any) -> tuple[JobId, Claimed]:
    """A scheduled run of a job that is as quiet as any."""
    job_id = await shop.job(Interval(MINUTE), **spec)
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    return job_id, run


async def test_a_success_counts_on_from_what_it_had_to_wait_for(hands: Hands, shop: Shop) -> None:
    """The timer moves and the lease changes while the report waits: what it writes is not made of what it saw before."""
    _, run = await running(shop)
    [(version, number)] = shop.sql("SELECT version, number FROM foliot.timers")
    await hands.keeper.execute("UPDATE foliot.timers SET version = version + 7, number = number + 5")
    await hands.keeper.execute("UPDATE foliot.leases SET cancel_requested_at = leased_at")
    told = await hands.behind(tell(hands.left, shop, run))
    await hands.keeper.commit()
    assert await told == 1
    assert shop.runs() == [("schedule", "succeeded", None)]
    assert shop.sql("SELECT count(*) FROM foliot.leases") == [(0,)]
    now = shop.timer("version", "number", "live", "success_count", "last_run_id")
    assert now == (version + 8, number + 5, 0, 1, run.run_id)


async def test_a_success_is_decided_by_what_its_job_has_become(hands: Hands, shop: Shop) -> None:
    """It was quiet when the report came, and is no longer when the report has its timer."""
    _, run = await running(shop)
    await hands.keeper.execute("UPDATE foliot.timers SET failures_in_a_row = 2")
    told = await hands.behind(tell(hands.left, shop, run))
    await hands.keeper.commit()
    assert await told == 1
    assert shop.timer("failures_in_a_row", "success_count", "live") == (0, 1, 0)


async def test_a_success_moves_the_timer_of_a_job_that_was_given_a_fixed_delay(
    hands: Hands, shop: Shop
) -> None:
    job_id, run = await running(shop)
    new = definition(Interval(timedelta(minutes=7), mode=IntervalMode.FIXED_DELAY))
    async with hands.midway(edit(hands.left, Scope(shop.workspace, BEN), job_id, new), at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run))
    await first
    assert await second == 1
    shop.clock.advance(3 * MINUTE)
    assert shop.timer("live", "success_count", "due_at") == (0, 1, shop.clock.now() + timedelta(minutes=4))


async def test_a_success_starts_a_job_that_was_made_to_depend_on_its_own_meanwhile(
    hands: Hands, shop: Shop
) -> None:
    job_id, run = await running(shop)
    new = replace(definition(Manual(), name="after"), depends_on=(Edge(job_id),))
    async with hands.midway(jobs.create(hands.left, Scope(shop.workspace, BEN), new), at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run))
    await first
    assert await second == 1
    assert shop.sql("SELECT trigger, upstream_run_id FROM foliot.runs WHERE trigger = 'dependency'") == [
        ("dependency", run.run_id)
    ]


@pytest.mark.parametrize(("stop", "status"), [(pause, "paused"), (disable, "disabled")])
async def test_a_success_of_a_job_that_was_stopped_meanwhile_counts_and_starts_nothing(
    hands: Hands, shop: Shop, stop: Callable[..., Coroutine[Any, Any, Any]], status: str
) -> None:
    job_id, run = await running(shop, rule="queue")
    await shop.tick(MINUTE)
    async with hands.midway(stop(hands.left, Scope(shop.workspace, BEN), job_id), at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run))
    await first
    assert await second == 1
    assert shop.status() == status
    assert shop.runs() == [("schedule", "succeeded", None), ("schedule", "waiting", None)]
    await resume(hands.left, Scope(shop.workspace, ANA), job_id)
    assert shop.runs()[:2] == [("schedule", "succeeded", None), ("schedule", "ready", None)]


async def test_a_success_ends_a_job_whose_last_run_it_has_become(hands: Hands, shop: Shop) -> None:
    job_id, run = await running(shop)
    new = definition(Interval(MINUTE), max_runs=1)
    async with hands.midway(edit(hands.left, Scope(shop.workspace, BEN), job_id, new), at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run))
    await first
    assert await second == 1
    assert shop.status() == "completed"


async def test_a_success_that_waited_for_a_forced_cancel_is_refused(hands: Hands, shop: Shop) -> None:
    _, run = await running(shop)
    cancel = cancel_run(hands.left, Scope(shop.workspace, BEN), run.run_id, force=True)
    async with hands.midway(cancel, at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run))
    assert await first is CancelResult.ENDED
    assert await second == 0
    assert shop.runs() == [("schedule", "cancelled", None)]
    assert shop.timer("live", "success_count", "run_count") == (0, 0, 1)


async def test_a_success_that_waited_for_the_sweeper_is_refused_and_its_run_is_made_again(
    hands: Hands, shop: Shop
) -> None:
    _, run = await running(shop)
    shop.owner.execute("DELETE FROM foliot.workers")
    async with hands.midway(sweep(hands.left), at="ready") as first:
        second = await hands.behind(tell(hands.right, shop, run))
    assert (await first).lost == 1
    assert await second == 0
    assert shop.runs() == [("schedule", "ready", None)]
    assert shop.timer("live", "success_count") == (1, 0)


async def test_of_a_batch_each_success_is_decided_by_its_own_job(hands: Hands, shop: Shop) -> None:
    """One of three jobs gets another run in line while the report waits for it; the others end the plain way."""
    for _ in range(3):
        await shop.job(Interval(MINUTE))
    await shop.tick(MINUTE)
    claimed = await shop.claim()
    loud = claimed[1].job_id
    async with hands.midway(run_now(hands.left, Scope(shop.workspace, BEN), loud), at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, *claimed))
    await first
    assert await second == 3
    assert shop.sql("SELECT job_id FROM foliot.ready") == [(loud,)]
    assert shop.sql(
        "SELECT job_id = %s, live, waiting, success_count FROM foliot.timers ORDER BY 1", loud
    ) == [
        (False, 0, 0, 1),
        (False, 0, 0, 1),
        (True, 1, 0, 1),
    ]


async def test_leases_that_changed_end_beside_jobs_that_have_become_loud(hands: Hands, shop: Shop) -> None:
    """PostgreSQL asks of each lease that changed meanwhile once more whether it is to go, and of those alone."""
    for _ in range(4):
        await shop.job(Interval(MINUTE))
    await shop.tick(MINUTE)
    claimed = await shop.claim()
    loud = [run.job_id for run in claimed[:2]]
    await hands.keeper.execute("UPDATE foliot.timers SET version = version + 1")
    await hands.keeper.execute(
        "UPDATE foliot.timers SET failures_in_a_row = 2 WHERE job_id = ANY (%s)", [loud]
    )
    await hands.keeper.execute("UPDATE foliot.leases SET cancel_requested_at = leased_at")
    told = await hands.behind(tell(hands.left, shop, *claimed))
    await hands.keeper.commit()
    assert await told == 4
    assert shop.sql(
        "SELECT DISTINCT live, success_count, run_count, failures_in_a_row FROM foliot.timers"
    ) == [(0, 1, 1, 0)]


async def test_a_cap_set_while_a_report_waits_is_right_after_the_next_recount(
    hands: Hands, shop: Shop
) -> None:
    _, run = await running(shop)
    await hands.keeper.execute("SELECT FROM foliot.timers FOR UPDATE")
    told = await hands.behind(tell(hands.left, shop, run))
    await set_limit(hands.right, Scope(shop.workspace, BEN), WHOLE, 1)
    await hands.keeper.commit()
    assert await told == 1
    await recount(hands.right)
    assert shop.sql("SELECT cap, in_use FROM foliot.limits") == [(1, 0)]
    await shop.tick(MINUTE)
    assert len(await shop.claim()) == 1


async def test_a_report_that_ends_runs_of_dependents_has_no_cap_in_hand_meanwhile(
    hands: Hands, shop: Shop
) -> None:
    """A claim has its runs before it asks for the caps: one that has the caps and then wants a run would wait with it in a ring."""
    upstream = await shop.job(Manual())
    new = replace(definition(Manual(), name="after", rule="cancel_running"), depends_on=(Edge(upstream),))
    dependent = (await jobs.create(hands.left, Scope(shop.workspace, BEN), new)).id
    await set_limit(hands.left, Scope(shop.workspace, BEN), WHOLE, 5)
    await run_now(hands.left, Scope(shop.workspace, ANA), upstream)
    [run] = await shop.claim()
    await run_now(hands.left, Scope(shop.workspace, ANA), dependent)
    await hands.keeper.execute("SELECT FROM foliot.dependencies FOR UPDATE")
    told = await hands.behind(tell(hands.right, shop, run))
    assert len(await claim(hands.left, OTHER, "default", ["python"], 5, Turns())) == 1
    await hands.keeper.rollback()
    assert await told == 1
    assert sorted(str(where) for _, where, _ in shop.runs()) == ["running", "succeeded", "waiting"]
    assert shop.sql("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases") == [(True,)]
    assert shop.sql("SELECT in_use FROM foliot.limits") == [(1,)]
