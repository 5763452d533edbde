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
from foliot.services.workers.claim import Claimer, Turns, _claim
from foliot.storage.tx import Role
from foliot.testing.fixtures import TEST
from tests.race.holding.meeting import blocked
from tests.services.hosting import H1, PVP, Machine, ids, machine, somebody
from tests.services.staging import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def h1(stage: Stage) -> Machine:
    return await machine(stage.database, somebody(stage.workspace), "h1", "pvp")


async def fill(stage: Stage, changes: int, reads: int = 0) -> set[RunId]:
    made = set()
    for n in range(changes + reads):
        is_read = n >= changes
        job = await stage.job(f"job {n}", Manual(), target=H1 if is_read else PVP, read_only=is_read)
        made.add(await run_control.run_now(stage.database, Scope(stage.workspace, TEST), job))
    return made


def under_way(stage: Stage) -> tuple[int, int]:
    found = stage.owner.execute(
        "SELECT count(*) FILTER (WHERE NOT read_only), count(*) FILTER (WHERE read_only) FROM foliot.leases"
    ).fetchone()
    assert found is not None
    return found[0], found[1]


async def test_a_claim_for_a_host_waits_for_the_one_before_it_and_finds_the_change_under_way(
    stage: Stage, h1: Machine, watcher: AsyncConnection[Any]
) -> None:
    await fill(stage, changes=2)
    other = await machine(stage.database, h1.speaker, "h1")  # a second process of the same host
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        claimer = Claimer(h1.worker, "", ["python"], 10, Turns(), stage.workspace, h1.id)
        first, _ = await _claim(tx, claimer)
        second = asyncio.create_task(other.claim())
        async with blocked(second, watcher):
            assert len(first) == 1
    assert await second == []
    assert under_way(stage) == (1, 0)


async def test_in_a_crowd_a_host_never_has_two_changes_under_way_nor_more_reads_than_it_may(
    stage: Stage, h1: Machine
) -> None:
    wanted = await fill(stage, changes=12, reads=30)
    crowd = [h1, *[await machine(stage.database, h1.speaker, "h1") for _ in range(4)]]
    most_changes = most_reads = 0
    done: list[RunId] = []

    async def process(mine: Machine) -> None:
        nonlocal most_changes, most_reads
        idle = 0
        while idle < 8:
            taken = await mine.claim(permits=3)
            idle = 0 if taken else idle + 1
            changes, reads = under_way(stage)
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
    stage: Stage, h1: Machine, watcher: AsyncConnection[Any]
) -> None:
    await fill(stage, changes=0, reads=4)
    async with stage.database.tx(Role.APP, stage.workspace) as tx:
        claimer = Claimer(h1.worker, "", ["python"], 2, Turns(), stage.workspace, h1.id)
        first, _ = await _claim(tx, claimer)
        lowering = asyncio.create_task(
            hosts.change(stage.database, Scope(stage.workspace, TEST), h1.id, {"max_reads": 2})
        )
        async with blocked(lowering, watcher):
            assert len(first) == 2
    await lowering
    assert await h1.claim() == []
    assert under_way(stage) == (0, 2)


async def test_a_run_that_is_claimed_while_its_server_moves_runs_on_one_host_alone(
    stage: Stage, h1: Machine
) -> None:
    await fill(stage, changes=1)
    h2 = await machine(stage.database, h1.speaker, "h2")
    [instance] = (await hosts.get(stage.database, Scope(stage.workspace), h1.id)).instances
    move = hosts.change_instance(stage.database, Scope(stage.workspace, TEST), h1.id, instance.id, to=h2.id)
    here, _, there = await asyncio.gather(h1.claim(), move, h2.claim())
    later = await h2.claim()
    assert len(here) + len(there) + len(later) == 1
    assert under_way(stage) == (1, 0)
