"""A freeze meets ticks, claims and reports: what has not started by then does not start."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from foliot.domain.access import Scope
from foliot.domain.freeze import RunningPolicy
from foliot.domain.schedule import ZONE_DATA_VERSION, Interval
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.scheduling import freezes as service
from foliot.services.scheduling.freezes import NewFreeze, lift, thaw, turn_on
from foliot.services.scheduling.tick import _plan
from foliot.services.settlement.report import Report, settle_reports
from foliot.storage.jobs import freezes
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import ClaimOrder
from foliot.storage.timers import fires
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.tx import Role
from foliot.testing.fixtures import ADA
from tests.race.waiting_runs.locks import blocked
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def begin(harness: WorkspaceHarness, running: RunningPolicy = RunningPolicy.DRAIN) -> asyncio.Task[Any]:
    new = NewFreeze("release", everything=True, running=running)
    return asyncio.create_task(turn_on(harness.database, Scope(harness.workspace, ADA), new))


@pytest.mark.parametrize("running", list(RunningPolicy))
async def test_a_claim_that_came_first_runs_and_is_stopped_where_the_freeze_says_so(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any], running: RunningPolicy
) -> None:
    await harness.job("beat", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    async with harness.database.tx(Role.ENGINE) as tx:
        mine = await run_queue.claim(
            tx, ClaimOrder(harness.worker, "default", ["python"], 1), [harness.workspace]
        )
        freezing = begin(harness, running)
        async with blocked(freezing, watcher):
            assert len(mine) == 1
    await freezing
    assert harness.waits() == []
    asked = harness.owner.execute("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases").fetchall()
    assert asked == [(running is RunningPolicy.STOP,)]


async def test_a_claim_passes_by_what_is_being_frozen(harness: WorkspaceHarness) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    freeze_id = await turn_on(
        harness.database,
        Scope(harness.workspace, ADA),
        NewFreeze("later", everything=True, start_at=harness.clock.now() + MINUTE),
    )
    harness.clock.advance(MINUTE)
    async with harness.database.tx(Role.ENGINE) as tx:
        assert await freezes.list_startable_while_frozen(tx, 10) == [beat]
        assert await service._hold(tx, [beat]) == 1
        assert await harness.claim() == []
    assert await harness.claim() == []
    harness.clock.advance(MINUTE)
    await lift(harness.database, Scope(harness.workspace, ADA), freeze_id)
    assert await harness.run_once() == [beat]


async def test_a_tick_that_did_not_see_the_freeze_is_waited_for(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    harness.clock.advance(HOUR)
    async with harness.database.tx(Role.ENGINE) as tx:
        rows = [timer.read() for timer in await fires.take_due(tx, 10, ZONE_DATA_VERSION)]
        context = await load_job_context(tx, rows)
        freezing = begin(harness)
        async with blocked(freezing, watcher):
            planned: list[PlannedTimer] = [_plan(row, context, tx.now) for row in rows]
            assert await fires.fire(tx, planned) == 1
    await freezing
    assert harness.waits() == [(beat, "freeze")]


async def test_a_retry_settled_as_the_freeze_begins_is_held(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    daily = await harness.job("daily", Interval(timedelta(days=1)))
    harness.clock.advance(timedelta(days=1))
    await harness.tick()
    [mine] = await harness.claim()
    async with harness.database.tx(Role.ENGINE) as tx:
        await settle_reports(tx, [Report(mine.run_id, mine.job_id, mine.fence, harness.worker, BROKE)])
        freezing = begin(harness)
        async with blocked(freezing, watcher):
            pass
    await freezing
    assert harness.waits() == [(daily, "freeze")]


async def test_two_sweepers_thaw_each_run_once(harness: WorkspaceHarness) -> None:
    for n in range(20):
        await harness.job(f"job {n}", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    freezing = NewFreeze("short", everything=True, end_at=harness.clock.now() + MINUTE)
    await turn_on(harness.database, Scope(harness.workspace, ADA), freezing)
    assert len(harness.waits()) == 20
    harness.clock.advance(MINUTE)
    thawed = await asyncio.gather(*(thaw(harness.database) for _ in range(4)))
    assert sum(each.runs for each in thawed) == 20
    assert len(harness.ready()) == 20
