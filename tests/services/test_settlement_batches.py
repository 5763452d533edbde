"""An upstream and its dependent that meet in one batch: who may start is decided by what the batch leaves behind."""

from __future__ import annotations

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import JobId
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.policy import Backoff, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Manual
from foliot.services.runs.run_control import run_now
from foliot.services.settlement.report import Report, report
from foliot.testing.fixtures import ANA
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
BOOM = Failed(RunError("boom", "It broke."))


def depend(driver: ServiceDriver, job_id: JobId, upstream_id: JobId) -> None:
    driver.owner.execute(
        "INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, \"on\", mode) VALUES (%s, %s, %s, 'success', 'trigger')",
        [driver.workspace, job_id, upstream_id],
    )
    driver.owner.execute("UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream_id])


def ends(driver: ServiceDriver, job_id: JobId) -> list[tuple[str | None, int]]:
    return driver.sql(
        "SELECT status, (SELECT count(*)::int FROM foliot.ready WHERE run_id = id) FROM foliot.runs WHERE job_id = %s ORDER BY number",
        job_id,
    )


@pytest.mark.parametrize("rule", ["skip", "queue", "queue_one", "cancel_running"])
async def test_a_dependent_whose_run_ends_in_the_same_batch_starts_the_next_at_once(
    driver: ServiceDriver, rule: str
) -> None:
    upstream = await driver.job()
    dependent = await driver.job(Manual(), rule=rule)
    depend(driver, dependent, upstream)
    await driver.tick(MINUTE)
    await driver.work()
    await driver.tick(MINUTE)
    both = await driver.claim()
    assert {run.job_id for run in both} == {upstream, dependent}
    reports = [Report(run.run_id, run.job_id, run.fence, driver.worker, Succeeded()) for run in both]
    assert len(await report(driver.database, reports)) == 2
    assert ends(driver, dependent) == [("succeeded", 0), (None, 1)]
    driver.balance()


async def test_a_run_that_stands_waiting_for_its_retry_gives_way_to_the_newly_triggered_one(
    driver: ServiceDriver,
) -> None:
    upstream = await driver.job()
    retry = Retry(3, Backoff.FIXED, base=60 * MINUTE)
    dependent = await driver.job(Manual(), rule="cancel_running", retry=retry)
    depend(driver, dependent, upstream)
    await driver.tick(MINUTE)
    await driver.work()
    await driver.work(BOOM)
    assert ends(driver, dependent) == [(None, 1)]
    await driver.tick(MINUTE)
    await driver.work()
    assert ends(driver, dependent) == [("cancelled", 0), (None, 1)]
    driver.balance()


async def test_two_ends_of_one_batch_complete_a_join_once(driver: ServiceDriver) -> None:
    beat = await driver.job(rule="concurrent")
    other = await driver.job(Manual())
    join = await driver.job(Manual(), rule="concurrent")
    depend(driver, join, beat)
    depend(driver, join, other)
    await run_now(driver.database, Scope(driver.workspace, ANA), other)
    await driver.work()
    for _ in range(2):
        await driver.tick(MINUTE)
    reports = [
        Report(run.run_id, run.job_id, run.fence, driver.worker, Succeeded()) for run in await driver.claim()
    ]
    assert len(await report(driver.database, reports)) == 2
    assert ends(driver, join) == [(None, 1)]
    driver.balance()
