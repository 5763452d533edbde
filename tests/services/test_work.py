"""Claim, report, settle: from a ready run to its end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval
from foliot.services.jobs import jobs
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.services.builders import WORKER

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


async def claimed(database: Database, permits: int = 10) -> list[Any]:
    return list(await claim(database, WORKER, "default", ["python"], permits, Turns()))


@pytest.mark.requirement("S2-5")
async def test_a_run_is_claimed_once_and_ends_where_its_report_says(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    await jobs.create(database, Scope(workspace, TEST), Definition("beat", Spec(Interval(MINUTE), "python")))
    clock.advance(MINUTE)
    await tick(database)
    [mine] = await claimed(database)
    assert await claimed(database) == []
    done = Report(mine.run_id, mine.job_id, mine.fence, WORKER, Succeeded(), {"synced": 120})
    assert await report(database, [done]) == {mine.run_id}
    assert await report(database, [done]) == frozenset()
    assert owner.execute("SELECT status, output, attempt_count, fence FROM foliot.runs").fetchall() == [
        ("succeeded", {"synced": 120}, 1, 1)
    ]
    assert owner.execute(
        "SELECT live, live_run_id, success_count, last_run_status FROM foliot.timers"
    ).fetchall() == [(0, None, 1, "succeeded")]
    assert owner.execute("SELECT count(*) FROM foliot.leases").fetchone() == (0,)


async def test_a_failure_waits_in_ready_for_its_retry_and_keeps_its_attempts(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    await jobs.create(
        database, Scope(workspace, TEST), Definition("daily", Spec(Interval(timedelta(days=1)), "python"))
    )
    clock.advance(timedelta(days=1))
    await tick(database)
    for wait in (5, 15, 30, None):
        [mine] = await claimed(database)
        failed = Report(mine.run_id, mine.job_id, mine.fence, WORKER, Failed(RunError("boom", "It broke.")))
        assert await report(database, [failed]) == {mine.run_id}
        assert await claimed(database) == []
        if wait:
            clock.advance(wait * MINUTE)
    assert owner.execute(
        "SELECT status, attempt_count, fence, error->>'code' FROM foliot.runs"
    ).fetchall() == [("failed", 4, 4, "boom")]
    assert owner.execute("SELECT number, status FROM foliot.attempts ORDER BY number").fetchall() == [
        (n, "failed") for n in (1, 2, 3, 4)
    ]
    assert owner.execute("SELECT failures_in_a_row, failure_count FROM foliot.timers").fetchall() == [(1, 1)]
