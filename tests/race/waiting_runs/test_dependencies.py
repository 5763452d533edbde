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
from tests.race.waiting_runs.locks import blocked
from tests.services.builders import make_definition
from tests.services.edges import set_edges
from tests.services.test_calendars import LUNCH
from tests.services.workspace_harness import MANUAL, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


def depending(upstream: JobId) -> Definition:
    return replace(make_definition(MANUAL), depends_on=(Edge(upstream),))


def done(harness: WorkspaceHarness, claimed: Claimed) -> Report:
    return Report(claimed.run_id, claimed.job_id, claimed.fence, harness.worker, Succeeded())


async def test_of_two_edits_that_would_close_a_circle_the_second_is_refused(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    left, right = await harness.job("left", MANUAL), await harness.job("right", MANUAL)
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        await write_edges(tx, left, Scope(harness.workspace), depending(right))
        second = asyncio.create_task(
            set_edges(harness.database, harness.workspace, right, [Edge(left)], TEST)
        )
        async with blocked(second, watcher):
            pass
    with pytest.raises(Invalid, match="wait for each other"):
        await second
    edges = harness.owner.execute("SELECT job_id, upstream_id FROM foliot.dependencies").fetchall()
    assert edges == [(left, right)]


@pytest.mark.requirement("X-5")
async def test_a_ring_of_edits_at_once_never_closes(harness: WorkspaceHarness) -> None:
    ring = [await harness.job(f"job {n}", MANUAL) for n in range(6)]
    edits = (
        set_edges(harness.database, harness.workspace, job, [Edge(ring[n - 1])], TEST)
        for n, job in enumerate(ring)
    )
    answers = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(isinstance(answer, Invalid) for answer in answers) == 1
    assert sum(answer is None for answer in answers) == 5


async def test_two_upstreams_that_end_at_once_start_their_join_once(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    upstreams = [await harness.job(name, MANUAL) for name in ("left", "right")]
    both = await harness.job("both", MANUAL, [Edge(upstream) for upstream in upstreams])
    for upstream in upstreams:
        await harness.run_manually(upstream)
    first, second = await harness.claim()
    async with harness.database.tx(Role.ENGINE) as tx:
        await settle_reports(tx, [done(harness, first)])
        late = asyncio.create_task(report(harness.database, [done(harness, second)]))
        async with blocked(late, watcher):
            pass
    assert await late == {second.run_id}
    assert harness.runs(both, "upstream_run_id") == [(second.run_id,)]


async def test_an_edge_made_while_its_upstream_ends_counts(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL)
    await harness.run_manually(sync)
    [upstream] = await harness.claim()
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        await write_edges(tx, after, Scope(harness.workspace), depending(sync))
        ending = asyncio.create_task(report(harness.database, [done(harness, upstream)]))
        async with blocked(ending, watcher):
            pass
    assert await ending == {upstream.run_id}
    assert harness.runs(after, "upstream_run_id") == [(upstream.run_id,)]


async def test_crowds_of_upstreams_start_their_joins_once(harness: WorkspaceHarness) -> None:
    upstreams = [await harness.job(f"up {n}", MANUAL) for n in range(4)]
    joins = [await harness.job(f"join {n}", MANUAL, [Edge(up) for up in upstreams]) for n in range(4)]
    for upstream in upstreams:
        await harness.run_manually(upstream)
    claimed = await harness.claim()
    await asyncio.gather(*(report(harness.database, [done(harness, each)]) for each in claimed))
    assert [len(harness.runs(join)) for join in joins] == [1] * 4


async def test_a_run_claimed_as_it_is_cancelled_learns_of_it(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    """The canceller looks among the leases, then among those that stand ready; in between a worker takes it."""
    sync = await harness.job("sync", MANUAL)
    overlap = Overlap(OverlapRule.CANCEL_RUNNING)
    after = await harness.job("after", MANUAL, [Edge(sync, delay=MINUTE)], overlap=overlap)
    await harness.end(sync)
    await harness.run_manually(sync)
    [upstream] = await harness.claim()
    harness.clock.advance(MINUTE)
    async with harness.database.tx(Role.ENGINE) as tx:
        [mine] = await run_queue.claim(
            tx, ClaimOrder(harness.worker, "default", ["python"], 1), [harness.workspace]
        )
        ending = asyncio.create_task(report(harness.database, [done(harness, upstream)]))
        async with blocked(ending, watcher):
            pass
    assert await ending == {upstream.run_id}
    asked = harness.owner.execute(
        "SELECT cancel_requested_at IS NOT NULL FROM foliot.leases WHERE run_id = %s", [mine.run_id]
    )
    assert asked.fetchall() == [(True,)]
    assert harness.waits() == [(after, "turn")]


async def test_a_job_made_while_its_calendar_is_edited_keeps_to_the_edit(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    lunch = await calendars.create(harness.database, Scope(harness.workspace, ADA), LUNCH)
    longer = replace(LUNCH, rules=(Weekly(time(12, 30), time(15)),))
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        await lock_shared(tx, [lunch])
        editing = asyncio.create_task(
            calendars.edit(harness.database, Scope(harness.workspace, ADA), lunch, longer)
        )
        async with blocked(editing, watcher):
            job = await harness.job("noon", Cron("45 11 * * *"), calendars=(lunch,))
            assert harness.timer(job, "next_at") == (datetime(2027, 1, 16, 13, tzinfo=UTC),)
    assert await editing == 1
    assert harness.timer(job, "next_at") == (datetime(2027, 1, 16, 14, tzinfo=UTC),)


async def test_a_calendar_that_a_job_begins_to_use_is_not_deleted(
    harness: WorkspaceHarness, watcher: AsyncConnection[Any]
) -> None:
    lunch = await calendars.create(harness.database, Scope(harness.workspace, ADA), LUNCH)
    job = await harness.job("job", MANUAL)
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        await link(tx, job, [lunch])
        deleting = asyncio.create_task(
            calendars.delete(harness.database, Scope(harness.workspace, ADA), lunch)
        )
        async with blocked(deleting, watcher):
            pass
    with pytest.raises(Conflict, match="is used by"):
        await deleting
