"""The fast path of firing writes what the general path writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.domain.ids import JobId
from foliot.domain.planning.plan import plan
from foliot.domain.policy import Limits, Overlap, OverlapRule
from foliot.domain.schedule import ZONE_DATA_VERSION, Cron, Interval, Once, Schedule
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.scheduling.fast_path import split_due
from foliot.services.scheduling.tick import _tick, tick
from foliot.storage.timers import fires
from foliot.storage.timers.fires import AlreadyRecordedError, PlannedTimer
from foliot.storage.tx import Role
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
TICK = timedelta(microseconds=1)
OWN = "'{job_id,id,run_id,live_run_id,last_fire_run_id,position}'::text[]"


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
        "SELECT t.live_run_id = r.id AND t.last_fire_run_id = r.id FROM foliot.timers AS t JOIN foliot.runs AS r USING (job_id)"
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


@pytest.mark.requirement("S3-12")
async def test_a_fast_fire_of_a_recorded_time_records_nothing(
    driver: ServiceDriver, caplog: pytest.LogCaptureFixture
) -> None:
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
    assert "tick.failed" not in caplog.text
    assert driver.sql("SELECT count(*) FROM foliot.runs") == [(1,)]
    assert driver.timer("live", "cursor_at") == (0, before[1])


@pytest.mark.parametrize("schedule", [Interval(MINUTE), Cron("* * * * *")])
@pytest.mark.parametrize(("by", "runs"), [(-TICK, 1), (0 * TICK, 2), (TICK, 2)])
async def test_no_run_is_planned_past_the_end(
    driver: ServiceDriver, schedule: Schedule, by: timedelta, runs: int
) -> None:
    """A neighbour without an end is planned first: its plan must not be taken for that of the other."""
    start = driver.clock.now()
    for end_at in (None, start + 2 * MINUTE + by):
        await driver.job(schedule, rule="concurrent", end_at=end_at)
    for _ in range(4):
        await driver.tick(MINUTE)
        await driver.work()  # a job with a live run is not on the fast path
    counts = driver.sql("SELECT count(*) FROM foliot.runs GROUP BY job_id ORDER BY 1")
    assert counts == [(runs,), (4,)]


@pytest.mark.parametrize("schedule", [Interval(MINUTE), Cron("* * * * *")])
@pytest.mark.parametrize(("by", "runs"), [(-TICK, 3), (0 * TICK, 3), (TICK, 2)])
async def test_no_run_is_planned_before_the_start(
    driver: ServiceDriver, schedule: Schedule, by: timedelta, runs: int
) -> None:
    start = driver.clock.now()
    for start_at in (None, start + 2 * MINUTE + by):
        await driver.job(schedule, rule="concurrent", start_at=start_at)
    for _ in range(4):
        await driver.tick(MINUTE)
        await driver.work()  # a job with a live run is not on the fast path
    counts = driver.sql("SELECT count(*) FROM foliot.runs GROUP BY job_id ORDER BY 1")
    assert counts == [(runs,), (4,)]


async def test_a_fire_of_a_timer_that_has_moved_writes_nothing(driver: ServiceDriver) -> None:
    """Both statements compare the version: the caller sees that a timer is missing, and rolls back."""
    for max_runs in (None, 9):
        await driver.job(Interval(MINUTE), max_runs=max_runs)
    driver.clock.advance(MINUTE)
    async with driver.database.tx(Role.ENGINE) as tx:
        taken = await fires.take_due(tx, 10, ZONE_DATA_VERSION)
    driver.owner.execute("UPDATE foliot.timers SET version = version + 1")
    fast, [other] = split_due(taken, driver.clock.now())
    assert len(fast) == 1

    async def fire_fast() -> None:
        async with driver.database.tx(Role.ENGINE) as tx:
            await fires.fire_fast(tx, fast)

    async def fire_other() -> None:
        async with driver.database.tx(Role.ENGINE) as tx:
            row = other.read()
            context = await load_job_context(tx, [row], gates=True)
            await fires.fire(tx, [PlannedTimer(row, plan(context.due(row), tx.now))])

    with pytest.raises(AlreadyRecordedError):
        await fire_fast()
    with pytest.raises(AssertionError, match="moved a locked timer"):
        await fire_other()
    assert driver.sql("SELECT count(*) FROM foliot.runs") == [(0,)]


@pytest.mark.parametrize(
    "change",
    [
        "live = 1",
        "waiting = 1",
        "live_until = due_at",
        "skip_next = 'not now'",
        "has_gate = true",
        "status = 'pending'",
        "status = 'paused'",
    ],
)
async def test_a_timer_with_anything_to_decide_is_not_on_the_fast_path(
    driver: ServiceDriver, change: str
) -> None:
    await driver.job(Interval(MINUTE))
    driver.clock.advance(MINUTE)

    async def is_fast_path() -> bool:
        async with driver.database.tx(Role.ENGINE) as tx:
            [timer] = await fires.take_due(tx, 10, ZONE_DATA_VERSION)
            return timer.is_fast_path

    assert await is_fast_path()
    driver.owner.execute(f"UPDATE foliot.timers SET {change}".encode())
    assert not await is_fast_path()


async def test_a_fire_forgives_the_errors_of_planning(driver: ServiceDriver) -> None:
    for max_runs in (None, 9):  # on the fast path and off it
        await driver.job(Interval(MINUTE), max_runs=max_runs)
    driver.owner.execute("UPDATE foliot.timers SET errors = 2")
    assert await driver.tick(MINUTE) == 2
    assert driver.sql("SELECT errors FROM foliot.timers") == [(0,)] * 2


async def test_of_more_due_timers_than_a_batch_holds_the_oldest_go_first(driver: ServiceDriver) -> None:
    ids = {minutes: await driver.job(Interval(minutes * MINUTE)) for minutes in (3, 1, 2)}
    driver.clock.advance(3 * MINUTE)
    assert (await tick(driver.database, 1)).looked_at == 1
    assert driver.sql("SELECT DISTINCT job_id FROM foliot.runs") == [(ids[1],)]
