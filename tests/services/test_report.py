"""Ends that others wait for: however a run ended, its dependents learn of it."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge, EdgeCondition
from foliot.domain.outcomes import Failed, HandedBack, Outcome, Succeeded
from foliot.domain.policy import Breaker, BreakerAction
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval, Manual
from foliot.services.jobs import job_edits, jobs
from foliot.services.runs import run_control
from foliot.services.settlement.report import Report, report
from foliot.services.workers.limits import set_limit
from foliot.testing.fixtures import ANA
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio


async def test_a_join_on_any_end_counts_a_cancelled_one(driver: ServiceDriver) -> None:
    one, other = await driver.job(Manual()), await driver.job(Manual())
    new = replace(
        definition(Manual(), name="join"),
        depends_on=(Edge(one, EdgeCondition.ANY), Edge(other, EdgeCondition.ANY)),
    )
    await jobs.create(driver.database, Scope(driver.workspace, ANA), new)
    run = await run_control.run_now(driver.database, Scope(driver.workspace, ANA), one)
    await run_control.cancel_run(driver.database, Scope(driver.workspace, ANA), run)
    await run_control.run_now(driver.database, Scope(driver.workspace, ANA), other)
    await driver.work()
    assert driver.sql("SELECT count(*) FROM foliot.runs WHERE trigger = 'dependency'") == [(1,)]


async def test_a_run_cancelled_by_the_next_planned_time_wakes_who_waits_for_any_end(
    driver: ServiceDriver,
) -> None:
    one = await driver.job(Interval(MINUTE), rule="cancel_running")
    new = replace(definition(Manual(), name="after"), depends_on=(Edge(one, EdgeCondition.ANY),))
    await jobs.create(driver.database, Scope(driver.workspace, ANA), new)
    await driver.tick(MINUTE)
    assert await driver.tick(MINUTE) == 1
    assert driver.sql("SELECT count(*) FROM foliot.runs WHERE trigger = 'dependency'") == [(1,)]
    driver.balance()


async def test_two_ends_of_one_batch_are_each_the_last_of_their_kind(driver: ServiceDriver) -> None:
    await driver.job(Interval(MINUTE), rule="concurrent")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    good, bad = await driver.claim()
    failed = Failed(RunError("boom", "It broke."))
    reported = [
        Report(good.run_id, good.job_id, good.fence, driver.worker, Succeeded()),
        Report(bad.run_id, bad.job_id, bad.fence, driver.worker, failed),
    ]
    assert len(await report(driver.database, reported)) == 2
    assert driver.timer("last_success_run_id", "last_failure_run_id", "last_end_run_id") == (
        good.run_id,
        bad.run_id,
        bad.run_id,
    )


async def test_a_run_that_an_edit_ends_wakes_who_waits_for_any_end(driver: ServiceDriver) -> None:
    one = await driver.job(Interval(MINUTE), rule="cancel_running")
    new = replace(definition(Manual(), name="after"), depends_on=(Edge(one, EdgeCondition.ANY),))
    await jobs.create(driver.database, Scope(driver.workspace, ANA), new)
    await driver.tick(MINUTE)
    driver.clock.advance(MINUTE)  # nobody ticks: closing the books plans the run that cancels the one in line
    hourly = definition(Interval(60 * MINUTE), rule="cancel_running")
    await job_edits.edit(driver.database, Scope(driver.workspace, ANA), one, hourly)
    assert driver.sql("SELECT count(*) FROM foliot.runs WHERE trigger = 'dependency'") == [(1,)]
    driver.balance()


async def test_a_report_on_a_job_whose_timer_is_gone_is_settled_with_the_others(
    driver: ServiceDriver,
) -> None:
    await driver.job(Interval(MINUTE), name="whole")
    torn = await driver.job(Interval(MINUTE), name="torn")
    await driver.tick(MINUTE)
    taken = await driver.claim()
    driver.owner.execute("DELETE FROM foliot.timers WHERE job_id = %s", [torn])
    reported = [
        Report(run.run_id, run.job_id, run.fence, driver.worker, Succeeded(), {"n": 1}) for run in taken
    ]
    assert await report(driver.database, reported) == {run.run_id for run in taken}
    assert driver.sql("SELECT status, output FROM foliot.runs") == [("succeeded", {"n": 1})] * 2
    assert driver.sql("SELECT count(*) FROM foliot.leases") == [(0,)]


async def test_what_a_job_without_a_timer_hands_back_is_not_tried_again(driver: ServiceDriver) -> None:
    await driver.job(Interval(MINUTE))
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    driver.owner.execute("DELETE FROM foliot.timers")
    assert await driver.finish(run, HandedBack())
    assert driver.sql("SELECT status FROM foliot.runs") == [("cancelled",)]
    assert driver.sql("SELECT count(*) FROM foliot.ready") == [(0,)]


@pytest.mark.parametrize(("order", "streak"), [("fs", 0), ("sf", 1), ("ffs", 0), ("fsf", 1), ("ff", 2)])
async def test_a_batch_leaves_the_streak_that_its_ends_leave_in_their_order(
    driver: ServiceDriver, order: str, streak: int
) -> None:
    await driver.job(Interval(MINUTE), rule="concurrent", breaker=Breaker(action=BreakerAction.NONE))
    for _ in order:
        await driver.tick(MINUTE)
    outcomes: dict[str, Outcome] = {"s": Succeeded(), "f": Failed(RunError("boom", "It broke."))}
    reported = [
        Report(run.run_id, run.job_id, run.fence, driver.worker, outcomes[kind])
        for run, kind in zip(await driver.claim(), order, strict=True)
    ]
    assert len(await report(driver.database, reported)) == len(order)
    assert driver.timer("failures_in_a_row", "failure_count") == (streak, order.count("f"))


async def test_a_run_whose_job_is_gone_gives_its_permit_back(driver: ServiceDriver) -> None:
    await set_limit(driver.database, Scope(driver.workspace, ANA), "", 1)
    await driver.job(Interval(MINUTE))
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    driver.owner.execute("DELETE FROM foliot.timers")
    assert await driver.finish(run)
    assert driver.sql("SELECT in_use FROM foliot.limits") == [(0,)]


async def test_a_run_that_failed_for_good_is_a_line_of_the_log(
    driver: ServiceDriver, caplog: pytest.LogCaptureFixture
) -> None:
    job = await driver.job(Interval(MINUTE))
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    failed = Failed(RunError("boom", "It broke."))
    with caplog.at_level(logging.WARNING):
        await report(driver.database, [Report(run.run_id, run.job_id, run.fence, driver.worker, failed)])
    [line] = [each for each in caplog.records if each.message == "run.failed"]
    assert (line.run, line.job) == (str(run.run_id), str(job))  # type: ignore[attr-defined]
    assert line.error == {"code": "boom", "message": "It broke."}  # type: ignore[attr-defined]
