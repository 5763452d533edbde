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
from tests.race.holding.meeting import blocked
from tests.services.staging import BROKE, Stage

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def begin(stage: Stage, running: RunningPolicy = RunningPolicy.DRAIN) -> asyncio.Task[Any]:
    new = NewFreeze("release", everything=True, running=running)
    return asyncio.create_task(turn_on(stage.database, Scope(stage.workspace, ADA), new))


@pytest.mark.parametrize("running", list(RunningPolicy))
async def test_a_claim_that_came_first_runs_and_is_stopped_where_the_freeze_says_so(
    stage: Stage, watcher: AsyncConnection[Any], running: RunningPolicy
) -> None:
    await stage.job("beat", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    async with stage.database.tx(Role.ENGINE) as tx:
        mine = await run_queue.claim(
            tx, ClaimOrder(stage.worker, "default", ["python"], 1), [stage.workspace]
        )
        freezing = begin(stage, running)
        async with blocked(freezing, watcher):
            assert len(mine) == 1
    await freezing
    assert stage.waits() == []
    asked = stage.owner.execute("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases").fetchall()
    assert asked == [(running is RunningPolicy.STOP,)]


async def test_a_claim_passes_by_what_is_being_frozen(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    freeze_id = await turn_on(
        stage.database,
        Scope(stage.workspace, ADA),
        NewFreeze("later", everything=True, start_at=stage.clock.now() + MINUTE),
    )
    stage.clock.advance(MINUTE)
    async with stage.database.tx(Role.ENGINE) as tx:
        assert await freezes.list_startable_while_frozen(tx, 10) == [beat]
        assert await service._hold(tx, [beat]) == 1
        assert await stage.claim() == []
    assert await stage.claim() == []
    stage.clock.advance(MINUTE)
    await lift(stage.database, Scope(stage.workspace, ADA), freeze_id)
    assert await stage.run_once() == [beat]


async def test_a_tick_that_did_not_see_the_freeze_is_waited_for(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    stage.clock.advance(HOUR)
    async with stage.database.tx(Role.ENGINE) as tx:
        rows = [timer.read() for timer in await fires.take_due(tx, 10, ZONE_DATA_VERSION)]
        context = await load_job_context(tx, rows)
        freezing = begin(stage)
        async with blocked(freezing, watcher):
            planned: list[PlannedTimer] = [_plan(row, context, tx.now) for row in rows]
            assert await fires.fire(tx, planned) == 1
    await freezing
    assert stage.waits() == [(beat, "freeze")]


async def test_a_retry_settled_as_the_freeze_begins_is_held(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    daily = await stage.job("daily", Interval(timedelta(days=1)))
    stage.clock.advance(timedelta(days=1))
    await stage.tick()
    [mine] = await stage.claim()
    async with stage.database.tx(Role.ENGINE) as tx:
        await settle_reports(tx, [Report(mine.run_id, mine.job_id, mine.fence, stage.worker, BROKE)])
        freezing = begin(stage)
        async with blocked(freezing, watcher):
            pass
    await freezing
    assert stage.waits() == [(daily, "freeze")]


async def test_two_sweepers_thaw_each_run_once(stage: Stage) -> None:
    for n in range(20):
        await stage.job(f"job {n}", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    freezing = NewFreeze("short", everything=True, end_at=stage.clock.now() + MINUTE)
    await turn_on(stage.database, Scope(stage.workspace, ADA), freezing)
    assert len(stage.waits()) == 20
    stage.clock.advance(MINUTE)
    thawed = await asyncio.gather(*(thaw(stage.database) for _ in range(4)))
    assert sum(each.runs for each in thawed) == 20
    assert len(stage.ready()) == 20
