"""The database's clock is the only one that decides. It may be set back or forward under us; no planned time is recorded twice for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.schedule import Cron, Interval, Schedule
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers import workers
from tests.services.service_driver import MINUTE, SUCCEEDED, ServiceDriver

pytestmark = pytest.mark.anyio
BACK = -10 * MINUTE


@pytest.mark.parametrize("schedule", [Cron("* * * * *"), Interval(MINUTE)])
async def test_a_clock_set_back_fires_nothing_again_and_goes_on_where_it_was(
    driver: ServiceDriver, schedule: Schedule
) -> None:
    await driver.job(schedule)
    for _ in range(3):
        assert await driver.tick(MINUTE) == 1
        await driver.work()
    assert await driver.tick(BACK) == 0
    for _ in range(10):
        assert await driver.tick(MINUTE) == 0
    assert await driver.tick(MINUTE) == 1
    assert len(await driver.work()) == 1
    assert len(driver.runs()) == 4
    driver.balance()


async def test_a_clock_that_was_ahead_for_a_while_leaves_one_gap_and_no_second_record(
    driver: ServiceDriver,
) -> None:
    await driver.job(Cron("* * * * *"))
    await driver.tick(MINUTE)
    await driver.work()
    await driver.tick(timedelta(hours=2))
    ahead = driver.runs()
    await driver.work()
    await driver.tick(timedelta(hours=-2))
    for _ in range(120):
        await driver.tick(MINUTE)
        await driver.work()
    assert len(driver.runs()) == len(ahead)
    await driver.tick(MINUTE)
    assert len(driver.runs()) == len(ahead) + 1
    driver.balance()


async def test_a_run_claimed_before_the_clock_was_set_back_is_settled_under_its_fence(
    driver: ServiceDriver,
) -> None:
    await driver.job(Interval(MINUTE))
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    driver.clock.advance(BACK)
    await sweep(driver.database)
    await advance_waiting_runs(driver.database)
    assert (await workers.beat(driver.database, driver.worker, draining=False, working_on=[])).is_alive
    done = Report(run.run_id, run.job_id, run.fence, driver.worker, SUCCEEDED)
    assert run.run_id in await report(driver.database, [done])
    assert driver.runs() == [("schedule", "succeeded", None)]
    driver.balance()
