"""A job whose rules nobody can read stands in nobody else's way."""

from __future__ import annotations

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.ids import JobId
from foliot.domain.schedule import Interval, Manual
from foliot.services.jobs import jobs
from foliot.services.runs import run_control
from foliot.testing.fixtures import ANA, BEN
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio


def spoil(driver: ServiceDriver, job_id: JobId) -> None:
    driver.owner.execute("UPDATE foliot.timers SET spec = '{}' WHERE job_id = %s", (job_id,))


@pytest.mark.parametrize("mode", list(EdgeMode))
async def test_the_end_of_an_upstream_is_written_whoever_depends_on_it(
    driver: ServiceDriver, mode: EdgeMode
) -> None:
    upstream = await driver.job(Manual())
    schedule = Manual() if mode is EdgeMode.TRIGGER else Interval(60 * MINUTE)
    for name in ("bad", "good"):
        behind = Definition(name, Spec(schedule, "python"), depends_on=(Edge(upstream, mode=mode),))
        job_id = (await jobs.create(driver.database, Scope(driver.workspace, ANA), behind)).id
        if name == "bad":
            spoil(driver, job_id)
    await run_control.run_now(driver.database, Scope(driver.workspace, BEN), upstream)
    [run] = await driver.claim()
    if mode is EdgeMode.GATE:
        await driver.tick(60 * MINUTE)
    assert await driver.finish(run)
    assert [each.job_id for each in await driver.claim()] == [job_id]
    driver.balance()
