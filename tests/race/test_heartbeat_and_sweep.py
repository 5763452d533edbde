"""A heartbeat and a strike-off at the same moment meet on the worker's row: exactly one of them wins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkerId, WorkspaceId
from foliot.domain.outcomes import Succeeded
from foliot.domain.schedule import Interval
from foliot.services.identity.installation import first_start
from foliot.services.jobs import jobs
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import SweepResult, sweep
from foliot.services.workers import workers
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database, Role
from foliot.storage.workers import workers as stored
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.race.lock_waits import BLOCKED

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


@pytest.fixture
async def other(login_url: str, clock: ManualClock) -> AsyncIterator[Database]:
    """The other hand."""
    async with Database(login_url, clock=clock) as opened:
        yield opened


@pytest.fixture
async def worker(database: Database) -> WorkerId:
    return await workers.register(database, "one", ["default"], ["python"], 1)


@pytest.fixture
async def held(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any], worker: WorkerId
) -> Claimed:
    await first_start(database, tzdata_version="2026a")
    [found] = owner.execute("SELECT id FROM foliot.workspaces").fetchall()
    definition = Definition("daily", Spec(Interval(DAY), "python"))
    await jobs.create(database, Scope(WorkspaceId(found[0]), TEST), definition)
    clock.advance(DAY)
    await tick(database)
    owner.execute("UPDATE foliot.workers SET alive_until = %s", [clock.now() + workers.LEASE])
    [mine] = await claim(database, worker, "default", ["python"], 1, Turns())
    return mine


async def blocked(owner: psycopg.Connection[Any], task: asyncio.Task[Any]) -> None:
    """Wait until the other hand waits for a lock."""
    async with asyncio.timeout(20):
        while owner.execute(BLOCKED).fetchone() == (0,):
            assert not task.done()
            await asyncio.sleep(0.005)


async def test_a_heartbeat_that_comes_first_saves_the_worker(
    database: Database,
    other: Database,
    clock: ManualClock,
    owner: psycopg.Connection[Any],
    worker: WorkerId,
    held: Claimed,
) -> None:
    clock.advance(workers.LEASE)  # the last moment at which it still counts
    async with database.tx(Role.ENGINE) as beating:
        assert await stored.record_heartbeat(
            beating, worker, clock.now() + workers.LEASE, is_draining=False, running_count=0
        )
        clock.advance(timedelta(seconds=1))  # for the sweeper the lease is over
        sweeping = asyncio.create_task(sweep(other))
        await blocked(owner, sweeping)
    assert await sweeping == SweepResult()
    assert (await workers.beat(database, worker)).is_alive


async def test_a_strike_off_that_comes_first_ends_the_worker(
    database: Database,
    other: Database,
    clock: ManualClock,
    owner: psycopg.Connection[Any],
    worker: WorkerId,
    held: Claimed,
) -> None:
    clock.advance(workers.LEASE + timedelta(seconds=1))
    async with database.tx(Role.ENGINE) as striking:
        assert [each for each, _ in await stored.remove_silent(striking)] == [worker]
        clock.set(clock.now() - timedelta(seconds=1))  # for the worker its lease is not over yet
        beating = asyncio.create_task(workers.beat(other, worker))
        await blocked(owner, beating)
    assert not (await beating).is_alive
    assert await sweep(database) == SweepResult(lost=1)


async def test_a_report_and_a_sweep_settle_a_run_once(
    database: Database,
    other: Database,
    clock: ManualClock,
    owner: psycopg.Connection[Any],
    worker: WorkerId,
    held: Claimed,
) -> None:
    done = Report(held.run_id, held.job_id, held.fence, worker, Succeeded())
    clock.advance(workers.LEASE + timedelta(seconds=1))
    accepted, swept = await asyncio.gather(report(database, [done]), sweep(other))
    assert len(accepted) + swept.lost == 1
    ended = owner.execute("SELECT count(*) FROM foliot.runs WHERE status = 'succeeded'").fetchone()
    waiting = owner.execute("SELECT count(*) FROM foliot.ready").fetchone()
    assert (ended, waiting) == (((1,), (0,)) if accepted else ((0,), (1,)))
    assert owner.execute("SELECT count(*) FROM foliot.leases").fetchone() == (0,)
