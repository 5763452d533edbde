"""Claims meet claims and reports under a cap: it is never exceeded, and no permit is lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from foliot.domain.access import Scope
from foliot.domain.outcomes import Succeeded
from foliot.domain.schedule import Interval
from foliot.services.settlement.report import Report, settle_reports
from foliot.services.workers.limit_steps import claim_permitted
from foliot.services.workers.limits import list_limits, recount, set_limit
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import Claimed, ClaimOrder
from foliot.storage.tx import Role, Tx
from foliot.testing.fixtures import TEST
from tests.race.holding.meeting import blocked
from tests.services.staging import Stage

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def claim_limited(tx: Tx, stage: Stage, share: int) -> tuple[list[Claimed], int]:
    order = ClaimOrder(stage.worker, "default", ["python"], share)
    return await claim_permitted(tx, stage.worker, await run_queue.lock_ready(tx, order, [stage.workspace]))


async def fill(stage: Stage, runs: int, **spec: Any) -> None:
    for n in range(runs):
        await stage.job(f"job {n}", Interval(HOUR), **spec)
    stage.clock.advance(HOUR)
    await stage.tick()


async def in_use(stage: Stage) -> int:
    [limit] = await list_limits(stage.database, stage.workspace)
    [(leases,)] = stage.owner.execute("SELECT count(*) FROM foliot.leases").fetchall()
    assert limit.in_use == leases
    return limit.in_use


async def test_a_claim_waits_for_the_one_before_it_and_takes_only_what_that_left(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 3)
    await fill(stage, 6)
    async with stage.database.tx(Role.ENGINE) as tx:
        first, _ = await claim_limited(tx, stage, share=2)
        second = asyncio.create_task(stage.claim())
        async with blocked(second, watcher):
            assert len(first) == 2
    assert len(await second) == 1
    assert await in_use(stage) == 3


async def test_many_claims_at_once_never_exceed_a_cap(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 5)
    await fill(stage, 40)
    claimed = await asyncio.gather(*(stage.claim(permits) for permits in (1, 2, 3, 4) * 2))
    assert sum(map(len, claimed)) == 5
    assert await in_use(stage) == 5


async def test_a_permit_given_back_reaches_the_next_in_line(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "db", 1)
    await fill(stage, 3, concurrency_key="db")
    [mine] = await stage.claim()
    stage.clock.advance(HOUR)
    await stage.job("fresh", Interval(timedelta(minutes=1)), concurrency_key="db")
    stage.clock.advance(timedelta(minutes=1))
    await stage.tick()
    async with stage.database.tx(Role.ENGINE) as tx:
        await settle_reports(tx, [Report(mine.run_id, mine.job_id, mine.fence, stage.worker, Succeeded())])
        rival = asyncio.create_task(stage.claim())
        async with blocked(rival, watcher):
            pass
    assert len(await rival) + len(await stage.claim()) == 1
    assert await in_use(stage) == 1


async def test_claims_and_reports_in_a_crowd_lose_nothing(stage: Stage) -> None:
    cap, most = 3, 0
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", cap)
    await fill(stage, 40)

    async def worker() -> int:
        nonlocal most
        done = idle = 0
        while idle < 5:
            claimed = await stage.claim(permits=2)
            idle = 0 if claimed else idle + 1
            [(leases,)] = stage.owner.execute("SELECT count(*) FROM foliot.leases").fetchall()
            most = max(most, leases)
            for each in claimed:
                done += await stage.report(each)
        return done

    done = sum(await asyncio.gather(*(worker() for _ in range(6))))
    while claimed := await stage.claim():
        for each in claimed:
            done += await stage.report(each)
    assert (done, most <= cap) == (40, True)
    assert await in_use(stage) == 0
    assert stage.waits() == []
    assert await recount(stage.database) == 0


async def test_a_recount_waits_for_who_is_counting(stage: Stage, watcher: AsyncConnection[Any]) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 3)
    await fill(stage, 3)
    async with stage.database.tx(Role.ENGINE) as tx:
        await claim_limited(tx, stage, share=3)
        counting = asyncio.create_task(recount(stage.database))
        async with blocked(counting, watcher):
            pass
    assert await counting == 0
    assert await in_use(stage) == 3
