"""What explain says of a planned time before it comes is what becomes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import time, timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.explain.records import Verdict
from foliot.domain.freeze import FreezePolicy
from foliot.domain.ids import JobId
from foliot.domain.policy import Overlap, OverlapRule
from foliot.domain.schedule import Cron, Otherwise, Window
from foliot.services.jobs import job_status
from foliot.services.runs import explain, run_control
from foliot.services.scheduling.freezes import NewFreeze, turn_on
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.testing.clock import NOON
from foliot.testing.fixtures import ANA
from tests.services.builders import insert_worker
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
TICK = timedelta(microseconds=1)
TIMES = 8
Change = Callable[[ServiceDriver, JobId], Awaitable[object]]


def pausing(until: timedelta) -> Change:
    return lambda driver, job: job_status.pause(
        driver.database, Scope(driver.workspace, ANA), job, until=NOON + until
    )


def freezing(start: timedelta, end: timedelta) -> Change:
    frozen = NewFreeze(
        "stock-taking", everything=True, start_at=NOON + start, end_at=NOON + end, after=FreezePolicy.SKIP
    )
    return lambda driver, job: turn_on(driver.database, Scope(driver.workspace, ANA), frozen)


def skipping(**what: Any) -> Change:
    return lambda driver, job: run_control.skip_next(
        driver.database, Scope(driver.workspace, ANA), job, reason="not now", **what
    )


async def nothing(driver: ServiceDriver, job: JobId) -> None:
    pass


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        ({}, nothing),
        ({}, pausing(3 * MINUTE)),
        ({}, pausing(3 * MINUTE - TICK)),
        ({}, pausing(3 * MINUTE + TICK)),
        ({}, freezing(2 * MINUTE, 5 * MINUTE)),
        ({}, freezing(2 * MINUTE + TICK, 5 * MINUTE + TICK)),
        ({}, skipping()),
        ({}, skipping(n=3)),
        ({}, skipping(until=NOON + 4 * MINUTE)),
        ({"max_runs": 3}, nothing),
        ({"end_at": NOON + 4 * MINUTE}, nothing),
        ({"end_at": NOON + 4 * MINUTE - TICK}, nothing),
        ({"start_at": NOON + 3 * MINUTE}, nothing),
        ({"window": Window(time(12, 2), time(12, 5, 30), otherwise=Otherwise.SKIP)}, nothing),
    ],
)
async def test_what_explain_says_before_is_what_happens(
    driver: ServiceDriver, spec: dict[str, Any], change: Change
) -> None:
    insert_worker(driver.owner, driver.clock, "one", ["default"], ["python"])  # else the runs would wait
    overlap = Overlap(OverlapRule.CONCURRENT)
    job = await driver.job(Cron("* * * * *"), overlap=overlap, **spec)
    await change(driver, job)
    times = [NOON + n * MINUTE for n in range(1, TIMES + 1)]
    said = [await explain.explain_instant(driver.database, Scope(driver.workspace), job, at) for at in times]
    will_run = [each.explanation.verdict is Verdict.WILL_RUN for each in said]
    for _ in times:
        driver.clock.advance(MINUTE)
        await job_status.resume_due(driver.database)
        await advance_waiting_runs(driver.database)
        while await driver.tick():
            pass
        await driver.work()
    ran = driver.sql("SELECT planned_for FROM foliot.runs WHERE status = 'succeeded'")
    assert [(at,) in ran for at in times] == will_run
