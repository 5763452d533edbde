"""Claims for one host meet claims, reports and moves: it never has two changes under way, and loses no run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection

from foliot.domain.access import Scope
from foliot.domain.ids import RunId
from foliot.domain.schedule import Manual
from foliot.services.runs import run_control
from foliot.services.workers import hosts
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, _claim
from foliot.storage.tx import Role
from foliot.testing.fixtures import TEST
from tests.race.waiting_runs.locks import blocked
from tests.services.remote_hosts import H1, PVP, RemoteHost, ids, register_host, worker_principal
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio


@pytest.fixture
async def h1(harness: WorkspaceHarness) -> RemoteHost:
    return await register_host(harness.database, worker_principal(harness.workspace), "h1", "pvp")


async def fill(harness: WorkspaceHarness, changes: int, reads: int = 0) -> set[RunId]:
    made = set()
    for n in range(changes + reads):
        is_read = n >= changes
        job = await harness.job(f"job {n}", Manual(), target=H1 if is_read else PVP, read_only=is_read)
        made.add(await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job))
    return made


def under_way(harness: WorkspaceHarness) -> tuple[int, int]:
    found = harness.owner.execute(
        "SELECT count(*) FILTER (WHERE NOT read_only), count(*) FILTER (WHERE read_only) FROM foliot.leases"
    ).fetchone()
    assert found is not None
    return found[0], found[1]


async def test_a_claim_for_a_host_waits_for_the_one_before_it_and_finds_the_change_under_way(
    harness: WorkspaceHarness, h1: RemoteHost, watcher: AsyncConnection[Any]
) -> None:
    await fill(harness, changes=2)
    other = await register_host(harness.database, h1.speaker, "h1")  # a second process of the same host
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        claimer = Claimer(h1.worker, "", ["python"], ClaimSize(10), Turns(), harness.workspace, h1.id)
        first, _ = await _claim(tx, claimer)
        second = asyncio.create_task(other.claim())
        async with blocked(second, watcher):
            assert len(first) == 1
    assert await second == []
    assert under_way(harness) == (1, 0)


async def test_in_a_crowd_a_host_never_has_two_changes_under_way_nor_more_reads_than_it_may(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    wanted = await fill(harness, changes=12, reads=30)
    crowd = [h1, *[await register_host(harness.database, h1.speaker, "h1") for _ in range(4)]]
    most_changes = most_reads = 0
    done: list[RunId] = []

    async def process(mine: RemoteHost) -> None:
        nonlocal most_changes, most_reads
        idle = 0
        while idle < 8:
            taken = await mine.claim(permits=3)
            idle = 0 if taken else idle + 1
            changes, reads = under_way(harness)
            most_changes, most_reads = max(most_changes, changes), max(most_reads, reads)
            for work in taken:
                assert await mine.report(work)
            done.extend(ids(taken))

    await asyncio.gather(*(process(each) for each in crowd))
    while taken := await h1.claim():
        for work in taken:
            assert await h1.report(work)
        done.extend(ids(taken))
    assert (most_changes, most_reads <= 8) == (1, True)
    assert sorted(done) == sorted(wanted)


async def test_a_limit_that_is_lowered_waits_for_the_claim_under_way_and_binds_the_next(
    harness: WorkspaceHarness, h1: RemoteHost, watcher: AsyncConnection[Any]
) -> None:
    await fill(harness, changes=0, reads=4)
    async with harness.database.tx(Role.APP, harness.workspace) as tx:
        claimer = Claimer(h1.worker, "", ["python"], ClaimSize(2), Turns(), harness.workspace, h1.id)
        first, _ = await _claim(tx, claimer)
        lowering = asyncio.create_task(
            hosts.change(harness.database, Scope(harness.workspace, TEST), h1.id, {"max_reads": 2})
        )
        async with blocked(lowering, watcher):
            assert len(first) == 2
    await lowering
    assert await h1.claim() == []
    assert under_way(harness) == (0, 2)


async def test_a_run_that_is_claimed_while_its_server_moves_runs_on_one_host_alone(
    harness: WorkspaceHarness, h1: RemoteHost
) -> None:
    await fill(harness, changes=1)
    h2 = await register_host(harness.database, h1.speaker, "h2")
    [instance] = (await hosts.get(harness.database, Scope(harness.workspace), h1.id)).instances
    move = hosts.change_instance(
        harness.database, Scope(harness.workspace, TEST), h1.id, instance.id, to=h2.id
    )
    here, _, there = await asyncio.gather(h1.claim(), move, h2.claim())
    later = await h2.claim()
    assert len(here) + len(there) + len(later) == 1
    assert under_way(harness) == (1, 0)
