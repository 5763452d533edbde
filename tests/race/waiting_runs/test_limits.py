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
from tests.race.waiting_runs.locks import blocked
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def claim_limited(tx: Tx, harness: WorkspaceHarness, share: int) -> tuple[list[Claimed], int]:
    order = ClaimOrder(harness.worker, "default", ["python"], share)
    return await claim_permitted(
        tx, harness.worker, await run_queue.lock_ready(tx, order, [harness.workspace])
    )


async def fill(harness: WorkspaceHarness, runs: int, **spec: Any) -> None:
    for n in range(runs):
        await harness.job(f"job {n}", Interval(HOUR), **spec)
    harness.clock.advance(HOUR)
    await harness.tick()


async def in_use(harness: WorkspaceHarness) -> int:
    [limit] = await list_limits(harness.database, harness.workspace)
    [(leases,)] = harness.owner.execute("SELECT count(*) FROM foliot.leases").fetchall()
    assert limit.in_use == leases
    return limit.in_use


async def test_a_claim_waits_for_the_one_before_it_and_takes_only_what_that_left(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 3)
    await fill(harness, 6)
    async with harness.database.tx(Role.ENGINE) as tx:
        first, _ = await claim_limited(tx, harness, share=2)
        second = asyncio.create_task(harness.claim())
        async with blocked(second, watcher):
            assert len(first) == 2
    assert len(await second) == 1
    assert await in_use(harness) == 3


async def test_many_claims_at_once_never_exceed_a_cap(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 5)
    await fill(harness, 40)
    claimed = await asyncio.gather(*(harness.claim(permits) for permits in (1, 2, 3, 4) * 2))
    assert sum(map(len, claimed)) == 5
    assert await in_use(harness) == 5


async def test_a_permit_given_back_reaches_the_next_in_line(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "db", 1)
    await fill(harness, 3, concurrency_key="db")
    [mine] = await harness.claim()
    harness.clock.advance(HOUR)
    await harness.job("fresh", Interval(timedelta(minutes=1)), concurrency_key="db")
    harness.clock.advance(timedelta(minutes=1))
    await harness.tick()
    async with harness.database.tx(Role.ENGINE) as tx:
        await settle_reports(tx, [Report(mine.run_id, mine.job_id, mine.fence, harness.worker, Succeeded())])
        rival = asyncio.create_task(harness.claim())
        async with blocked(rival, watcher):
            pass
    assert len(await rival) + len(await harness.claim()) == 1
    assert await in_use(harness) == 1


async def test_claims_and_reports_in_a_crowd_lose_nothing(harness: WorkspaceHarness) -> None:
    cap, most = 3, 0
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", cap)
    await fill(harness, 40)

    async def worker() -> int:
        nonlocal most
        done = idle = 0
        while idle < 5:
            claimed = await harness.claim(permits=2)
            idle = 0 if claimed else idle + 1
            [(leases,)] = harness.owner.execute("SELECT count(*) FROM foliot.leases").fetchall()
            most = max(most, leases)
            for each in claimed:
                done += await harness.report(each)
        return done

    done = sum(await asyncio.gather(*(worker() for _ in range(6))))
    while claimed := await harness.claim():
        for each in claimed:
            done += await harness.report(each)
    assert (done, most <= cap) == (40, True)
    assert await in_use(harness) == 0
    assert harness.waits() == []
    assert await recount(harness.database) == 0


async def test_a_recount_waits_for_who_is_counting(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 3)
    await fill(harness, 3)
    async with harness.database.tx(Role.ENGINE) as tx:
        await claim_limited(tx, harness, share=3)
        counting = asyncio.create_task(recount(harness.database))
        async with blocked(counting, watcher):
            pass
    assert await counting == 0
    assert await in_use(harness) == 3


async def test_a_claim_under_a_cap_passes_by_the_runs_of_another_claim(harness: WorkspaceHarness) -> None:
    await fill(harness, 4)
    order = ClaimOrder(harness.worker, "default", ["python"], 2)
    async with (
        asyncio.timeout(20),
        harness.database.tx(Role.ENGINE) as one,
        harness.database.tx(Role.ENGINE) as other,
    ):
        mine = await run_queue.lock_ready(one, order, [harness.workspace])
        theirs = await run_queue.lock_ready(other, order, [harness.workspace])
    assert (len(mine), len(theirs), mine.keys() & theirs.keys()) == (2, 2, set())


async def test_a_permit_that_is_given_back_waits_for_nobody_who_has_the_next_in_line(
    harness: WorkspaceHarness, owner_url: str
) -> None:
    """Who has that row ends or freezes the run, and may need the timer that the report holds."""
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    await fill(harness, 3)
    [mine] = await harness.claim()
    assert len(harness.waits()) == 2
    async with await AsyncConnection.connect(owner_url) as holder, asyncio.timeout(20):
        await holder.execute("SELECT FROM foliot.waiting ORDER BY position LIMIT 1 FOR UPDATE")
        assert await harness.report(mine)
        await holder.rollback()
    assert await recount(harness.database) == 0
    assert len(await harness.claim()) == 1
