"""Figures of an owner, of all owners and of one job equal a plain count of the records, rolled up or not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings

from foliot.domain.access import Scope
from foliot.domain.ids import JobId, PrincipalId
from foliot.services.runs.statistics import Totals, job_stats, roll_up, workspace_stats
from tests.examples import examples
from tests.services.service_driver import ServiceDriver
from tests.services.twin_histories import JobHistory, Player, Way, histories

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)
OWNERS = PrincipalId(UUID(int=1)), PrincipalId(UUID(int=2))
# In Python, so that no mistake of the statements is repeated here.
RECORDS = (
    "SELECT runs.status, attempt_count, planned_until IS NOT NULL, count FROM foliot.runs JOIN foliot.jobs ON jobs.id = job_id"
    " WHERE runs.status IS NOT NULL AND (%s::uuid IS NULL OR owner_id = %s) AND (%s::uuid IS NULL OR jobs.id = %s)"
)
FAILURES = ("failed", "timed_out", "interrupted")


@settings(examples(40, some=4), suppress_health_check=list(HealthCheck))
@given(history=histories())
async def test_every_figure_is_a_plain_count(driver: ServiceDriver, history: JobHistory) -> None:
    player = Player(driver)
    for table in ("job_days", "workspace_days", "uncounted_runs"):
        driver.owner.execute(f"DELETE FROM foliot.{table}".encode())
    driver.owner.execute("UPDATE foliot.scans SET position = '00000000-0000-0000-0000-000000000000'")
    await player.play(history, Way())
    for number in range(len(history.jobs)):
        driver.owner.execute(
            "UPDATE foliot.jobs SET owner_id = %s WHERE name = %s", [OWNERS[number % 2], f"job {number}"]
        )
    await check(driver)
    for _ in range(2):  # the open runs of the first round end before the second
        driver.clock.advance(DAY)
        await check(driver)
        while (await roll_up(driver.database, 3)).is_more:
            pass
        await check(driver)
        for run in player.held.values():
            assert await driver.finish(run)
        player.held.clear()
        await check(driver)


async def check(driver: ServiceDriver) -> None:
    for owner in (None, *OWNERS):
        found = await workspace_stats(driver.database, Scope(driver.workspace, visible_owner=owner))
        assert plain(found.totals) == counted(driver, owner, None)
        assert found.newest.runs == found.totals.runs
        for table, number in (
            ("ready", found.now.ready),
            ("waiting", found.now.waiting),
            ("leases", found.now.running),
        ):
            rows = driver.sql(
                f"SELECT count(*) FROM foliot.{table} JOIN foliot.jobs ON jobs.id = job_id"
                " WHERE %s::uuid IS NULL OR owner_id = %s",
                owner,
                owner,
            )
            assert rows == [(number,)], table
        known = driver.sql(
            "SELECT count(*) FROM foliot.jobs WHERE %s::uuid IS NULL OR owner_id = %s", owner, owner
        )
        assert known == [(sum(found.jobs.values()),)]
    for (job_id,) in driver.sql("SELECT id FROM foliot.jobs"):
        mine = await job_stats(driver.database, Scope(driver.workspace), JobId(job_id))
        assert plain(mine.totals) == counted(driver, None, job_id)


def plain(totals: Totals) -> tuple[int, ...]:
    return totals.records, totals.runs, totals.successes, totals.failures, totals.skips


def counted(driver: ServiceDriver, owner: PrincipalId | None, job_id: Any) -> tuple[int, ...]:
    rows = driver.sql(RECORDS, owner, owner, job_id, job_id)
    attempted = [status for status, attempts, _, _ in rows if attempts and status != "skipped"]
    skips = sum(1 if not is_gap else count for status, _, is_gap, count in rows if status == "skipped")
    failures = sum(status in FAILURES for status in attempted)
    return len(rows), len(attempted), attempted.count("succeeded"), failures, skips
