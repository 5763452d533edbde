"""Shadow mode: planned times are recorded and do not run, whatever triggers them; what a person asks for does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.dependencies import Edge
from foliot.domain.schedule import Interval
from tests.services.workspace_harness import MANUAL, WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def test_each_planned_time_is_recorded_and_none_runs(harness: WorkspaceHarness) -> None:
    job = await harness.job("copy", Interval(HOUR), shadow=True)
    for _ in range(3):
        harness.clock.advance(HOUR)
        await harness.tick()
    assert harness.ready() == []
    assert harness.runs(job, "status, skip_reason") == [("skipped", "shadow")] * 3


async def test_planned_times_of_an_outage_are_recorded_and_not_caught_up(harness: WorkspaceHarness) -> None:
    job = await harness.job("copy", Interval(HOUR), shadow=True)
    harness.clock.advance(5 * HOUR + HOUR / 2)
    await harness.tick()
    assert harness.ready() == []
    counted = harness.runs(job, "status, count")
    assert {status for status, _ in counted} == {"skipped"}
    assert sum(count or 1 for _, count in counted) == 5


async def test_an_upstream_job_starts_nothing_in_shadow(harness: WorkspaceHarness) -> None:
    first = await harness.job("first", MANUAL)
    then = await harness.job("then", MANUAL, [Edge(first)], shadow=True)
    await harness.end(first)
    assert harness.runs(then, "status, skip_reason") == [("skipped", "shadow")]


async def test_a_manual_run_runs(harness: WorkspaceHarness) -> None:
    job = await harness.job("copy", Interval(HOUR), shadow=True)
    await harness.run_manually(job)
    assert await harness.run_once() == [job]
    assert harness.runs(job, "status") == [("succeeded",)]
