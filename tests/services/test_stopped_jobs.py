"""Nothing that the schedule made starts while its job is stopped, whatever it was doing when that happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.ids import JobId
from foliot.domain.outcomes import Failed, HandedBack, Lost, Outcome, TimedOut
from foliot.domain.policy import Breaker, BreakerAction, Retry
from foliot.domain.run import RunError, Trigger
from foliot.domain.schedule import Interval, Manual
from foliot.services.jobs import job_status, jobs
from foliot.services.runs import run_control
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers import limits
from foliot.testing.fixtures import ANA, BEN
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
HOUR = 60 * MINUTE
BOOM = Failed(RunError("boom", "It broke."))
AGAIN = Retry(delays=(MINUTE,), past_next=True)


async def pause(driver: ServiceDriver, job_id: JobId) -> None:
    await job_status.pause(driver.database, Scope(driver.workspace, BEN), job_id)


async def resume(driver: ServiceDriver, job_id: JobId) -> None:
    await job_status.resume(driver.database, Scope(driver.workspace, BEN), job_id)


async def run_manually(driver: ServiceDriver, job_id: JobId) -> None:
    await run_control.run_now(driver.database, Scope(driver.workspace, BEN), job_id)


async def starts_only_after_its_resume(driver: ServiceDriver, job_id: JobId) -> None:
    await advance_waiting_runs(driver.database)
    assert await driver.claim() == []
    driver.balance()
    await resume(driver, job_id)
    assert [run.trigger for run in await driver.claim()] == [Trigger.SCHEDULE]
    driver.balance()


@pytest.mark.parametrize("outcome", [BOOM, TimedOut(), Lost(), HandedBack()])
async def test_an_attempt_that_ends_in_a_pause_is_repeated_after_it(
    driver: ServiceDriver, outcome: Outcome
) -> None:
    job_id = await driver.job(Interval(HOUR), retry=AGAIN)
    await driver.tick(HOUR)
    [run] = await driver.claim()
    await pause(driver, job_id)
    assert await driver.finish(run, outcome)
    assert driver.timer("live", "waiting") == (0, 1)
    driver.clock.advance(5 * MINUTE)
    await starts_only_after_its_resume(driver, job_id)


async def test_a_run_at_a_cap_waits_for_the_resume(driver: ServiceDriver) -> None:
    await limits.set_limit(driver.database, Scope(driver.workspace, BEN), "", 1)
    other, job_id = await driver.job(Manual()), await driver.job(Interval(HOUR))
    await run_manually(driver, other)
    [run] = await driver.claim()
    await driver.tick(HOUR)
    assert await driver.claim() == []
    await pause(driver, job_id)
    assert await driver.finish(run)
    await starts_only_after_its_resume(driver, job_id)


async def test_a_run_that_a_freeze_held_waits_for_the_resume(driver: ServiceDriver) -> None:
    job_id = await driver.job(Interval(HOUR))
    await driver.tick(HOUR)
    frozen = await freezes.turn_on(
        driver.database, Scope(driver.workspace, BEN), NewFreeze("sale", everything=True)
    )
    driver.clock.advance(MINUTE)
    await pause(driver, job_id)
    await freezes.lift(driver.database, Scope(driver.workspace, BEN), frozen)
    await starts_only_after_its_resume(driver, job_id)


async def test_a_run_at_a_gate_waits_for_the_resume(driver: ServiceDriver) -> None:
    upstream = await driver.job(Manual())
    spec = Spec(Interval(HOUR), "python", retry=Retry(0))
    gated = Definition("gated", spec, depends_on=(Edge(upstream, mode=EdgeMode.GATE),))
    job_id = (await jobs.create(driver.database, Scope(driver.workspace, ANA), gated)).id
    await run_manually(driver, upstream)
    [run] = await driver.claim()
    await driver.tick(HOUR)
    await pause(driver, job_id)
    assert await driver.finish(run)
    driver.clock.advance(HOUR)  # past the patience of the gate, which is not what it waits for any more
    await starts_only_after_its_resume(driver, job_id)


async def test_what_somebody_asked_for_passes_the_run_that_a_pause_holds(driver: ServiceDriver) -> None:
    job_id = await driver.job(Interval(HOUR))
    await driver.tick(HOUR)
    await run_manually(driver, job_id)
    await pause(driver, job_id)
    [run] = await driver.claim()
    assert run.trigger is Trigger.MANUAL
    driver.balance()
    assert await driver.finish(run)
    await starts_only_after_its_resume(driver, job_id)


async def test_what_somebody_asked_for_passes_the_attempt_that_failed_in_a_pause(
    driver: ServiceDriver,
) -> None:
    job_id = await driver.job(Interval(HOUR), retry=AGAIN)
    await driver.tick(HOUR)
    [run] = await driver.claim()
    await run_manually(driver, job_id)
    await pause(driver, job_id)
    assert await driver.finish(run, BOOM)
    driver.clock.advance(MINUTE)
    [run] = await driver.claim()
    assert run.trigger is Trigger.MANUAL
    driver.balance()


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(BOOM, "failed"), (TimedOut(), "timed_out"), (Lost(), "interrupted"), (HandedBack(), "cancelled")],
)
async def test_nothing_of_an_archived_job_is_tried_again(
    driver: ServiceDriver, outcome: Outcome, status: str
) -> None:
    job_id = await driver.job(retry=AGAIN)
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    await job_status.archive(driver.database, Scope(driver.workspace, BEN), job_id)
    assert await driver.finish(run, outcome)
    assert driver.runs() == [("schedule", status, None)]
    driver.balance()


@pytest.mark.parametrize("action", [BreakerAction.PAUSE, BreakerAction.FAIL])
async def test_a_breaker_holds_back_the_other_runs_of_its_job(
    driver: ServiceDriver, action: BreakerAction
) -> None:
    job_id = await driver.job(rule="concurrent", breaker=Breaker(after=1, action=action))
    for _ in range(3):
        await driver.tick(MINUTE)
    [run] = await driver.claim(permits=1)
    assert await driver.finish(run, BOOM)
    assert driver.status() in ("paused", "failed")
    assert driver.timer("live", "waiting", "live_run_id") == (0, 2, None)
    driver.balance()
    await advance_waiting_runs(driver.database)
    assert await driver.claim() == []
    await resume(driver, job_id)
    assert len(await driver.claim()) == 2
    driver.balance()


async def test_a_breaker_holds_back_what_is_repeated_in_the_same_batch(driver: ServiceDriver) -> None:
    """One attempt is to be repeated, then another run trips the breaker, then a third attempt is to be repeated."""
    breaker = Breaker(after=1, action=BreakerAction.PAUSE)
    job_id = await driver.job(rule="concurrent", breaker=breaker, retry=replace(AGAIN, max=1))
    for _ in range(4):
        await driver.tick(MINUTE)
    before, tripping, after, _ = await driver.claim()
    assert await driver.finish(tripping, BOOM)
    driver.clock.advance(MINUTE)
    [tripping] = await driver.claim()
    ends = [(before, BOOM), (tripping, BOOM), (after, BOOM)]
    reports = [Report(run.run_id, run.job_id, run.fence, driver.worker, outcome) for run, outcome in ends]
    assert len(await report(driver.database, reports)) == 3
    assert driver.status() == "paused"
    assert driver.timer("live", "waiting") == (1, 2)  # the fourth is still under way
    driver.balance()
    driver.clock.advance(5 * MINUTE)
    await advance_waiting_runs(driver.database)
    assert await driver.claim() == []
    await resume(driver, job_id)
    assert {run.run_id for run in await driver.claim()} == {before.run_id, after.run_id}
    driver.balance()


async def test_what_somebody_asked_for_passes_a_breaker(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="concurrent", breaker=Breaker(after=1, action=BreakerAction.PAUSE))
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    await run_manually(driver, job_id)
    await driver.tick(MINUTE)
    assert await driver.finish(run, BOOM)
    assert [run.trigger for run in await driver.claim()] == [Trigger.MANUAL]
    driver.balance()


async def test_the_next_attempt_goes_before_the_runs_that_waited_behind_it(driver: ServiceDriver) -> None:
    job_id = await driver.job(Interval(HOUR), retry=AGAIN, rule="queue")
    for _ in range(3):
        await driver.tick(HOUR)
    [first] = await driver.claim()
    await pause(driver, job_id)
    assert await driver.finish(first, BOOM)
    driver.clock.advance(5 * MINUTE)
    await resume(driver, job_id)
    [again] = await driver.claim()
    assert (again.run_id, again.attempt) == (first.run_id, 2)
    driver.balance()
