"""Edits of edges meet each other; ends of upstreams meet at one dependent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from foliot.domain.access import Scope
from foliot.domain.definition import Definition
from foliot.domain.dependencies import Edge
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import JobId
from foliot.domain.outcomes import Succeeded
from foliot.domain.policy import Overlap, OverlapRule
from foliot.domain.schedule import Cron, Weekly
from foliot.services.jobs import calendars
from foliot.services.jobs.dependency_steps import write_edges
from foliot.services.settlement.report import Report, report, settle_reports
from foliot.storage.jobs.calendars import link, lock_shared
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import Claimed, ClaimOrder
from foliot.storage.tx import Role
from foliot.testing.fixtures import ADA, TEST
from tests.race.holding.meeting import blocked
from tests.services.edges import set_edges
from tests.services.given import defined
from tests.services.staging import MANUAL, Stage
from tests.services.test_calendars import LUNCH

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


def depending(upstream: JobId) -> Definition:
    return replace(defined(MANUAL), depends_on=(Edge(upstream),))


def done(stage: Stage, claimed: Claimed) -> Report:
    return Report(claimed.run_id, claimed.job_id, claimed.fence, stage.worker, Succeeded())


async def test_of_two_edits_that_would_close_a_circle_the_second_is_refused(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    left, right = await stage.job("left", MANUAL), await stage.job("right", MANUAL)
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        await write_edges(tx, left, Scope(stage.workspace), depending(right))
        second = asyncio.create_task(set_edges(stage.database, stage.workspace, right, [Edge(left)], TEST))
        async with blocked(second, watcher):
            pass
    with pytest.raises(Invalid, match="wait for each other"):
        await second
    edges = stage.owner.execute("SELECT job_id, upstream_id FROM foliot.dependencies").fetchall()
    assert edges == [(left, right)]


async def test_a_ring_of_edits_at_once_never_closes(stage: Stage) -> None:
    ring = [await stage.job(f"job {n}", MANUAL) for n in range(6)]
    edits = (
        set_edges(stage.database, stage.workspace, job, [Edge(ring[n - 1])], TEST)
        for n, job in enumerate(ring)
    )
    answers = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(isinstance(answer, Invalid) for answer in answers) == 1
    assert sum(answer is None for answer in answers) == 5


async def test_two_upstreams_that_end_at_once_start_their_join_once(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    upstreams = [await stage.job(name, MANUAL) for name in ("left", "right")]
    both = await stage.job("both", MANUAL, [Edge(upstream) for upstream in upstreams])
    for upstream in upstreams:
        await stage.by_hand(upstream)
    first, second = await stage.claim()
    async with stage.database.tx(Role.ENGINE) as tx:
        await settle_reports(tx, [done(stage, first)])
        late = asyncio.create_task(report(stage.database, [done(stage, second)]))
        async with blocked(late, watcher):
            pass
    assert await late == {second.run_id}
    assert stage.runs(both, "upstream_run_id") == [(second.run_id,)]


async def test_an_edge_made_while_its_upstream_ends_counts(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL)
    await stage.by_hand(sync)
    [upstream] = await stage.claim()
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        await write_edges(tx, after, Scope(stage.workspace), depending(sync))
        ending = asyncio.create_task(report(stage.database, [done(stage, upstream)]))
        async with blocked(ending, watcher):
            pass
    assert await ending == {upstream.run_id}
    assert stage.runs(after, "upstream_run_id") == [(upstream.run_id,)]


async def test_crowds_of_upstreams_start_their_joins_once(stage: Stage) -> None:
    upstreams = [await stage.job(f"up {n}", MANUAL) for n in range(4)]
    joins = [await stage.job(f"join {n}", MANUAL, [Edge(up) for up in upstreams]) for n in range(4)]
    for upstream in upstreams:
        await stage.by_hand(upstream)
    claimed = await stage.claim()
    await asyncio.gather(*(report(stage.database, [done(stage, each)]) for each in claimed))
    assert [len(stage.runs(join)) for join in joins] == [1] * 4


async def test_a_run_claimed_as_it_is_cancelled_learns_of_it(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    """The canceller looks among the leases, then among those that stand ready; in between a worker takes it."""
    sync = await stage.job("sync", MANUAL)
    overlap = Overlap(OverlapRule.CANCEL_RUNNING)
    after = await stage.job("after", MANUAL, [Edge(sync, delay=MINUTE)], overlap=overlap)
    await stage.end(sync)
    await stage.by_hand(sync)
    [upstream] = await stage.claim()
    stage.clock.advance(MINUTE)
    async with stage.database.tx(Role.ENGINE) as tx:
        [mine] = await run_queue.claim(
            tx, ClaimOrder(stage.worker, "default", ["python"], 1), [stage.workspace]
        )
        ending = asyncio.create_task(report(stage.database, [done(stage, upstream)]))
        async with blocked(ending, watcher):
            pass
    assert await ending == {upstream.run_id}
    asked = stage.owner.execute(
        "SELECT cancel_requested_at IS NOT NULL FROM foliot.leases WHERE run_id = %s", [mine.run_id]
    )
    assert asked.fetchall() == [(True,)]
    assert stage.waits() == [(after, "turn")]


async def test_a_job_made_while_its_calendar_is_edited_keeps_to_the_edit(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    lunch = await calendars.create(stage.database, Scope(stage.workspace, ADA), LUNCH)
    longer = replace(LUNCH, rules=(Weekly(time(12, 30), time(15)),))
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        await lock_shared(tx, [lunch])
        editing = asyncio.create_task(
            calendars.edit(stage.database, Scope(stage.workspace, ADA), lunch, longer)
        )
        async with blocked(editing, watcher):
            job = await stage.job("noon", Cron("45 11 * * *"), calendars=(lunch,))
            assert stage.timer(job, "next_at") == (datetime(2027, 1, 16, 13, tzinfo=UTC),)
    assert await editing == 1
    assert stage.timer(job, "next_at") == (datetime(2027, 1, 16, 14, tzinfo=UTC),)


async def test_a_calendar_that_a_job_begins_to_use_is_not_deleted(
    stage: Stage, watcher: AsyncConnection[Any]
) -> None:
    lunch = await calendars.create(stage.database, Scope(stage.workspace, ADA), LUNCH)
    job = await stage.job("job", MANUAL)
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        await link(tx, job, [lunch])
        deleting = asyncio.create_task(calendars.delete(stage.database, Scope(stage.workspace, ADA), lunch))
        async with blocked(deleting, watcher):
            pass
    with pytest.raises(Conflict, match="is used by"):
        await deleting
