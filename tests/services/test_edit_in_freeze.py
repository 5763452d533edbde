"""An edit while a freeze holds planned times for later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.freeze import FreezePolicy
from foliot.domain.schedule import Interval
from foliot.services.jobs import job_edits, jobs
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.testing.fixtures import ANA
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("after", list(FreezePolicy))
async def test_times_held_under_the_old_schedule_are_recorded_when_a_new_one_takes_over(
    driver: ServiceDriver, after: FreezePolicy
) -> None:
    job_id = await driver.job()
    end_at = driver.clock.now() + 60 * MINUTE
    new = NewFreeze("stock-taking", everything=True, end_at=end_at, after=after)
    await freezes.turn_on(driver.database, Scope(driver.workspace, ANA), new)
    for _ in range(3):
        await driver.tick(MINUTE)
    stored = await jobs.get(driver.database, driver.workspace, job_id)
    spec = replace(stored.definition.spec, schedule=Interval(5 * MINUTE))
    await job_edits.edit(
        driver.database, Scope(driver.workspace, ANA), job_id, replace(stored.definition, spec=spec)
    )
    found = driver.sql("SELECT skip_reason, coalesce(count, 1) FROM foliot.runs WHERE schedule_rev = 1")
    assert {reason for reason, _ in found} == {"frozen"}
    assert sum(count for _, count in found) == 3
    driver.balance()
