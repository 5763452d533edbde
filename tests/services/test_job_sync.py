"""One call tends to all that waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.policy import Limits
from foliot.domain.schedule import Interval
from foliot.services.scheduling.freezes import NewFreeze, turn_on
from foliot.services.settlement.waiting_runs import WaitingRunsResult, advance_waiting_runs
from foliot.testing.fixtures import ADA
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


async def test_it_holds_lets_go_and_ends_and_then_has_nothing_to_do(harness: WorkspaceHarness) -> None:
    await harness.job("patient", Interval(HOUR))
    await harness.job("prompt", Interval(HOUR), limits=Limits(start_deadline=2 * MINUTE))
    harness.clock.advance(HOUR)
    await harness.tick()
    start_at = harness.clock.now() + MINUTE
    later = NewFreeze("short", everything=True, start_at=start_at, end_at=start_at + MINUTE)
    await turn_on(harness.database, Scope(harness.workspace, ADA), later)
    assert await advance_waiting_runs(harness.database) == WaitingRunsResult()
    harness.clock.advance(MINUTE)
    assert await advance_waiting_runs(harness.database) == WaitingRunsResult(held=2)
    assert await advance_waiting_runs(harness.database) == WaitingRunsResult()
    harness.clock.advance(MINUTE)
    tended = await advance_waiting_runs(harness.database)
    assert tended.released == 1  # the other was too late
    assert harness.owner.execute(
        "SELECT skip_reason FROM foliot.runs WHERE status = 'skipped'"
    ).fetchall() == [("deadline",)]
    assert await advance_waiting_runs(harness.database) == WaitingRunsResult()
