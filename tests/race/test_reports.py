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
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.policy import Backoff, Retry
from foliot.domain.run import RunError
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
from tests.race.race_nodes import RaceNodes
from tests.services.builders import WORKER as OTHER
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio


async def tell(node: Database, driver: ServiceDriver, *runs: Claimed) -> int:
    done = [Report(run.run_id, run.job_id, run.fence, driver.worker, Succeeded()) for run in runs]
    return len(await report(node, done))


async def running(driver: ServiceDriver, **spec: Any) -> tuple[JobId, Claimed]:
    """A scheduled run of a job that is as quiet as any."""
    job_id = await driver.job(Interval(MINUTE), **spec)
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    return job_id, run


async def test_a_success_counts_on_from_what_it_had_to_wait_for(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """The timer moves and the lease changes while the report waits: what it writes is not made of what it saw before."""
    _, run = await running(driver)
    [(version, number)] = driver.sql("SELECT version, number FROM foliot.timers")
    await nodes.lock_holder.execute("UPDATE foliot.timers SET version = version + 7, number = number + 5")
    await nodes.lock_holder.execute("UPDATE foliot.leases SET cancel_requested_at = leased_at")
    reported = await nodes.start_blocked(tell(nodes.left, driver, run))
    await nodes.lock_holder.commit()
    assert await reported == 1
    assert driver.runs() == [("schedule", "succeeded", None)]
    assert driver.sql("SELECT count(*) FROM foliot.leases") == [(0,)]
    now = driver.timer("version", "number", "live", "success_count", "last_run_id")
    assert now == (version + 8, number + 5, 0, 1, run.run_id)


async def test_a_success_is_decided_by_what_its_job_has_become(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """It was quiet when the report came, and is no longer when the report has its timer."""
    _, run = await running(driver)
    await nodes.lock_holder.execute("UPDATE foliot.timers SET failures_in_a_row = 2")
    reported = await nodes.start_blocked(tell(nodes.left, driver, run))
    await nodes.lock_holder.commit()
    assert await reported == 1
    assert driver.timer("failures_in_a_row", "success_count", "live") == (0, 1, 0)


async def test_a_success_moves_the_timer_of_a_job_that_was_given_a_fixed_delay(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id, run = await running(driver)
    new = definition(Interval(timedelta(minutes=7), mode=IntervalMode.FIXED_DELAY))
    async with nodes.paused_at_table(
        edit(nodes.left, Scope(driver.workspace, BEN), job_id, new), at="audit"
    ) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run))
    await first
    assert await second == 1
    driver.clock.advance(3 * MINUTE)
    assert driver.timer("live", "success_count", "due_at") == (
        0,
        1,
        driver.clock.now() + timedelta(minutes=4),
    )


async def test_a_success_starts_a_job_that_was_made_to_depend_on_its_own_meanwhile(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id, run = await running(driver)
    new = replace(definition(Manual(), name="after"), depends_on=(Edge(job_id),))
    async with nodes.paused_at_table(
        jobs.create(nodes.left, Scope(driver.workspace, BEN), new), at="audit"
    ) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run))
    await first
    assert await second == 1
    assert driver.sql("SELECT trigger, upstream_run_id FROM foliot.runs WHERE trigger = 'dependency'") == [
        ("dependency", run.run_id)
    ]


@pytest.mark.parametrize(("stop", "status"), [(pause, "paused"), (disable, "disabled")])
async def test_a_success_of_a_job_that_was_stopped_meanwhile_counts_and_starts_nothing(
    nodes: RaceNodes, driver: ServiceDriver, stop: Callable[..., Coroutine[Any, Any, Any]], status: str
) -> None:
    job_id, run = await running(driver, rule="queue")
    await driver.tick(MINUTE)
    async with nodes.paused_at_table(
        stop(nodes.left, Scope(driver.workspace, BEN), job_id), at="audit"
    ) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run))
    await first
    assert await second == 1
    assert driver.status() == status
    assert driver.runs() == [("schedule", "succeeded", None), ("schedule", "waiting", None)]
    await resume(nodes.left, Scope(driver.workspace, ANA), job_id)
    assert driver.runs()[:2] == [("schedule", "succeeded", None), ("schedule", "ready", None)]


async def test_a_success_ends_a_job_whose_last_run_it_has_become(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id, run = await running(driver)
    new = definition(Interval(MINUTE), max_runs=1)
    async with nodes.paused_at_table(
        edit(nodes.left, Scope(driver.workspace, BEN), job_id, new), at="audit"
    ) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run))
    await first
    assert await second == 1
    assert driver.status() == "completed"


async def test_a_success_that_waited_for_a_forced_cancel_is_refused(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    _, run = await running(driver)
    cancel = cancel_run(nodes.left, Scope(driver.workspace, BEN), run.run_id, force=True)
    async with nodes.paused_at_table(cancel, at="audit") as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run))
    assert await first is CancelResult.ENDED
    assert await second == 0
    assert driver.runs() == [("schedule", "cancelled", None)]
    assert driver.timer("live", "success_count", "run_count") == (0, 0, 1)


async def test_a_success_that_waited_for_the_sweeper_is_refused_and_its_run_is_made_again(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    _, run = await running(driver)
    driver.owner.execute("DELETE FROM foliot.workers")
    async with nodes.paused_at_table(sweep(nodes.left), at="ready") as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run))
    assert (await first).lost == 1
    assert await second == 0
    assert driver.runs() == [("schedule", "ready", None)]
    assert driver.timer("live", "success_count") == (1, 0)


async def test_of_a_batch_each_success_is_decided_by_its_own_job(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """One of three jobs gets another run in line while the report waits for it; the others end the plain way."""
    for _ in range(3):
        await driver.job(Interval(MINUTE))
    await driver.tick(MINUTE)
    claimed = await driver.claim()
    loud = claimed[1].job_id
    async with nodes.paused_at_table(
        run_now(nodes.left, Scope(driver.workspace, BEN), loud), at="audit"
    ) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, *claimed))
    await first
    assert await second == 3
    assert driver.sql("SELECT job_id FROM foliot.ready") == [(loud,)]
    assert driver.sql(
        "SELECT job_id = %s, live, waiting, success_count FROM foliot.timers ORDER BY 1", loud
    ) == [
        (False, 0, 0, 1),
        (False, 0, 0, 1),
        (True, 1, 0, 1),
    ]


async def test_leases_that_changed_end_beside_jobs_that_have_become_loud(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """PostgreSQL asks of each lease that changed meanwhile once more whether it is to go, and of those alone."""
    for _ in range(4):
        await driver.job(Interval(MINUTE))
    await driver.tick(MINUTE)
    claimed = await driver.claim()
    loud = [run.job_id for run in claimed[:2]]
    await nodes.lock_holder.execute("UPDATE foliot.timers SET version = version + 1")
    await nodes.lock_holder.execute(
        "UPDATE foliot.timers SET failures_in_a_row = 2 WHERE job_id = ANY (%s)", [loud]
    )
    await nodes.lock_holder.execute("UPDATE foliot.leases SET cancel_requested_at = leased_at")
    reported = await nodes.start_blocked(tell(nodes.left, driver, *claimed))
    await nodes.lock_holder.commit()
    assert await reported == 4
    assert driver.sql(
        "SELECT DISTINCT live, success_count, run_count, failures_in_a_row FROM foliot.timers"
    ) == [(0, 1, 1, 0)]


async def test_a_cap_set_while_a_report_waits_is_right_after_the_next_recount(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    _, run = await running(driver)
    await nodes.lock_holder.execute("SELECT FROM foliot.timers FOR UPDATE")
    reported = await nodes.start_blocked(tell(nodes.left, driver, run))
    await set_limit(nodes.right, Scope(driver.workspace, BEN), WHOLE, 1)
    await nodes.lock_holder.commit()
    assert await reported == 1
    await recount(nodes.right)
    assert driver.sql("SELECT cap, in_use FROM foliot.limits") == [(1, 0)]
    await driver.tick(MINUTE)
    assert len(await driver.claim()) == 1


async def test_a_report_that_ends_runs_of_dependents_has_no_cap_in_hand_meanwhile(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """A claim has its runs before it asks for the caps: one that has the caps and then wants a run would wait with it in a ring."""
    upstream = await driver.job(Manual())
    new = replace(definition(Manual(), name="after", rule="cancel_running"), depends_on=(Edge(upstream),))
    dependent = (await jobs.create(nodes.left, Scope(driver.workspace, BEN), new)).id
    await set_limit(nodes.left, Scope(driver.workspace, BEN), WHOLE, 5)
    await run_now(nodes.left, Scope(driver.workspace, ANA), upstream)
    [run] = await driver.claim()
    await run_now(nodes.left, Scope(driver.workspace, ANA), dependent)
    await nodes.lock_holder.execute("SELECT FROM foliot.dependencies FOR UPDATE")
    reported = await nodes.start_blocked(tell(nodes.right, driver, run))
    assert len(await claim(nodes.left, OTHER, "default", ["python"], 5, Turns())) == 1
    await nodes.lock_holder.rollback()
    assert await reported == 1
    assert sorted(str(where) for _, where, _ in driver.runs()) == ["running", "succeeded", "waiting"]
    assert driver.sql("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases") == [(True,)]
    assert driver.sql("SELECT in_use FROM foliot.limits") == [(1,)]


async def test_a_failure_that_waited_for_a_cancel_request_is_a_cancelled_run_and_not_a_retry(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """A freeze that stops runs marks their leases without the timers of their jobs."""
    retry = Retry(3, Backoff.FIXED, base=MINUTE, past_next=True)
    _, run = await running(driver, retry=retry)
    await nodes.lock_holder.execute("UPDATE foliot.leases SET cancel_requested_at = leased_at")
    broken = Failed(RunError("boom", "It broke."))
    done = Report(run.run_id, run.job_id, run.fence, driver.worker, broken)
    reported = await nodes.start_blocked(report(nodes.left, [done]))
    await nodes.lock_holder.commit()
    assert await reported == {run.run_id}
    assert driver.runs() == [("schedule", "cancelled", None)]
