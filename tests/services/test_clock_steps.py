"""The database's clock is the only one that decides. It may be set back or forward under us; no planned time is recorded twice for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.schedule import Cron, Interval, Schedule
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers import workers
from tests.services.shop import MINUTE, SUCCEEDED, Shop

pytestmark = pytest.mark.anyio
BACK = -10 * MINUTE


@pytest.mark.parametrize("schedule", [Cron("* * * * *"), Interval(MINUTE)])
async def test_a_clock_set_back_fires_nothing_again_and_goes_on_where_it_was(
    shop: Shop, schedule: Schedule
) -> None:
    await shop.job(schedule)
    for _ in range(3):
        assert await shop.tick(MINUTE) == 1
        await shop.work()
    assert await shop.tick(BACK) == 0
    for _ in range(10):
        assert await shop.tick(MINUTE) == 0
    assert await shop.tick(MINUTE) == 1
    assert len(await shop.work()) == 1
    assert len(shop.runs()) == 4
    shop.balance()


async def test_a_clock_that_was_ahead_for_a_while_leaves_one_gap_and_no_second_record(shop: Shop) -> None:
    await shop.job(Cron("* * * * *"))
    await shop.tick(MINUTE)
    await shop.work()
    await shop.tick(timedelta(hours=2))
    ahead = shop.runs()
    await shop.work()
    await shop.tick(timedelta(hours=-2))
    for _ in range(120):
        await shop.tick(MINUTE)
        await shop.work()
    assert len(shop.runs()) == len(ahead)
    await shop.tick(MINUTE)
    assert len(shop.runs()) == len(ahead) + 1
    shop.balance()


async def test_a_run_claimed_before_the_clock_was_set_back_is_settled_under_its_fence(shop: Shop) -> None:
    await shop.job(Interval(MINUTE))
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    shop.clock.advance(BACK)
    await sweep(shop.database)
    await advance_waiting_runs(shop.database)
    assert (await workers.beat(shop.database, shop.worker, draining=False, working_on=[])).is_alive
    done = Report(run.run_id, run.job_id, run.fence, shop.worker, SUCCEEDED)
    assert run.run_id in await report(shop.database, [done])
    assert shop.runs() == [("schedule", "succeeded", None)]
    shop.balance()
