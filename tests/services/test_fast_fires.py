"""The fast path of firing writes what the general path writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.domain.ids import JobId
from foliot.domain.policy import Limits, Overlap, OverlapRule
from foliot.domain.schedule import ZONE_DATA_VERSION, Cron, Interval, Once, Schedule
from foliot.services.scheduling.fast_path import split_due
from foliot.services.scheduling.tick import _tick, tick
from foliot.storage.timers import fires
from foliot.storage.timers.fires import AlreadyRecordedError
from foliot.storage.tx import Role
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
OWN = "'{job_id,id,run_id,live_run_id,position}'::text[]"


def everything(driver: ServiceDriver, job_id: JobId) -> list[list[Any]]:
    """All that is stored of a job, but for what differs between any two jobs."""
    return [
        driver.sql(f"SELECT to_jsonb(t) - {OWN} FROM foliot.{table} AS t WHERE job_id = %s", job_id)
        for table in ("timers", "runs", "ready", "waiting")
    ]


@pytest.mark.parametrize("schedule", [Interval(60 * MINUTE), Cron("0 * * * *", timezone="America/New_York")])
@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"overlap": Overlap(OverlapRule.CONCURRENT), "limits": Limits(timeout=timedelta(seconds=7))},
        {"queue": "slow", "priority": 9, "concurrency_key": "printer"},
    ],
)
async def test_the_fast_path_writes_what_the_general_path_writes(
    driver: ServiceDriver, schedule: Schedule, spec: dict[str, Any]
) -> None:
    jobs = [await driver.job(schedule, **spec) for _ in range(2)]
    driver.clock.advance(60 * MINUTE)
    assert (await _tick(driver.database, 1)).recorded == 1
    assert (await _tick(driver.database, 1, is_careful=True)).recorded == 1
    assert everything(driver, jobs[0]) == everything(driver, jobs[1])
    live = driver.sql(
        "SELECT t.live_run_id = r.id FROM foliot.timers AS t JOIN foliot.runs AS r USING (job_id)"
    )
    assert live == [(True,)] * 2
    driver.balance()


async def test_a_timer_off_the_fast_path_is_planned_by_itself(driver: ServiceDriver) -> None:
    hourly = await driver.job(Interval(60 * MINUTE))
    bounded = await driver.job(Interval(60 * MINUTE), max_runs=5)
    once = await driver.job(Once(driver.clock.now() + 60 * MINUTE))
    driver.clock.advance(60 * MINUTE)
    async with driver.database.tx(Role.ENGINE) as tx:
        taken = await fires.take_due(tx, 10, ZONE_DATA_VERSION)
        fast, others = split_due(taken, tx.now)
        assert [UUID(bytes=each.job_id) for each in fast] == [hourly]
        assert set(fires.job_ids_of(others)) == {bounded, once}
        _, late = split_due(taken, tx.now + 2 * MINUTE)
        assert len(late) == 3, "what is late leaves a gap or is caught up"
    assert (await tick(driver.database)).recorded == 3
    driver.clock.advance(60 * MINUTE)
    async with driver.database.tx(Role.ENGINE) as tx:
        fast, _ = split_due(await fires.take_due(tx, 10, ZONE_DATA_VERSION), tx.now)
        assert fast == [], "the run before is still live"


async def test_a_fast_fire_of_a_recorded_time_records_nothing(driver: ServiceDriver) -> None:
    await driver.job(Interval(60 * MINUTE))
    driver.clock.advance(60 * MINUTE)
    [before] = driver.sql("SELECT cursor_at, due_at FROM foliot.timers")
    await tick(driver.database)
    driver.sql("DELETE FROM foliot.ready RETURNING run_id")
    driver.sql(
        "UPDATE foliot.timers SET live = 0, live_run_id = NULL, cursor_at = %s, due_at = %s RETURNING job_id",
        *before,
    )
    with pytest.raises(AlreadyRecordedError):
        await _tick(driver.database, 10)
    assert (await tick(driver.database)).recorded == 0
    assert driver.sql("SELECT count(*) FROM foliot.runs") == [(1,)]
    assert driver.timer("live", "cursor_at") == (0, before[1])
