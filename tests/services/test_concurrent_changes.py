"""What changes while a run is under way, or while nobody looks, is respected by what comes next."""

from __future__ import annotations

from datetime import time, timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.outcomes import Failed, HandedBack
from foliot.domain.policy import Limits, Misfire, MisfireRule, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Cron, Interval, Window
from foliot.services.jobs import job_edits, job_status
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.testing.fixtures import BEN
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio
HOUR = 60 * MINUTE
BOOM = Failed(RunError("boom", "It broke."))
AGAIN = Retry(delays=(MINUTE,), past_next=True)


async def test_a_retry_goes_where_an_edit_has_sent_its_job(driver: ServiceDriver) -> None:
    job_id = await driver.job(retry=AGAIN)
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    elsewhere = definition(retry=AGAIN, queue="slow", priority=3, limits=Limits(timeout=HOUR))
    await job_edits.edit(driver.database, Scope(driver.workspace, BEN), job_id, elsewhere)
    assert await driver.finish(run, BOOM)
    assert driver.sql("SELECT queue, priority, timeout FROM foliot.ready") == [("slow", 3, HOUR)]
    await job_status.archive(driver.database, Scope(driver.workspace, BEN), job_id)
    driver.balance()
    assert driver.sql("SELECT FROM foliot.ready") == []


async def test_a_run_that_failed_and_was_handed_back_has_failed_where_it_cannot_start_again(
    driver: ServiceDriver,
) -> None:
    await driver.job(Cron("0 12 * * *"), window=Window(time(11), time(13)), retry=AGAIN)
    now = driver.clock.now()
    await driver.tick(now.replace(hour=12, minute=0) + timedelta(days=1) - now)
    await driver.tick()
    for outcome in (BOOM, HandedBack()):
        [run] = await driver.claim()
        assert await driver.finish(run, outcome)
        driver.clock.advance(MINUTE)
    driver.clock.advance(2 * HOUR)
    await advance_waiting_runs(driver.database)
    assert [status for _, status, _ in driver.runs()][-1] == "failed"


async def test_late_runs_stand_behind_those_that_are_on_time(driver: ServiceDriver) -> None:
    await driver.job(Interval(10 * MINUTE), misfire=Misfire(MisfireRule.ALL), rule="concurrent")
    await driver.job(Interval(HOUR))
    start = driver.clock.now()
    await driver.tick(HOUR + timedelta(seconds=1))
    claimed = [(run.planned_for - start) // MINUTE for run in await driver.claim(20)]
    assert claimed == [60, 60, 10, 20, 30, 40, 50]


async def test_an_edit_that_waited_for_a_tick_does_not_plan_its_time_again(driver: ServiceDriver) -> None:
    """An edit that began a moment before noon and got the lock after the tick had fired noon."""
    job_id = await driver.job(Cron("*/5 * * * *"))
    await driver.tick(5 * MINUTE)
    await driver.work()
    moment = timedelta(milliseconds=2)
    driver.clock.advance(-moment)
    await job_edits.edit(
        driver.database, Scope(driver.workspace, BEN), job_id, definition(Cron("*/5,1 * * * *"))
    )
    await driver.tick(moment)
    assert len(driver.runs()) == 1
