"""Whose turn it is: a claim goes on to those who have something to do now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from foliot.domain.ids import FIRST_ID
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue import run_queue
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.builders import WORKER, insert_immortal_worker

pytestmark = pytest.mark.anyio


def put(
    owner: psycopg.Connection[Any], workspace: int, available_at: object, job_id: UUID | None = None
) -> UUID:
    run_id = uuid4()
    owner.execute(
        "INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive,"
        " timeout, trigger) VALUES (%s, %s, %s, 'default', 'python', 0, %s, %s, true, '1 min', 'schedule')",
        [UUID(int=workspace), run_id, job_id or uuid4(), available_at, available_at],
    )
    return run_id


@pytest.fixture(autouse=True)
def worker(owner: psycopg.Connection[Any]) -> None:
    insert_immortal_worker(owner, WORKER)


async def claimed(database: Database, permits: int, turns: Turns) -> list[UUID]:
    return [run.run_id for run in await claim(database, WORKER, "default", ["python"], permits, turns)]


@pytest.mark.parametrize("permits", [1, 3, 500])
async def test_workspaces_with_nothing_but_retries_to_come_do_not_hide_those_behind_them(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any], permits: int
) -> None:
    for workspace in range(1, 121):
        put(owner, workspace, "infinity")
    wanted = put(owner, 200, clock.now())
    assert await claimed(database, permits, Turns()) == [wanted]
    assert await claimed(database, permits, Turns()) == []


async def test_no_claim_takes_more_than_its_permits_however_many_workspaces_it_asks(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    for workspace in range(1, 4):
        put(owner, workspace, "infinity")
    runs = [put(owner, workspace, clock.now()) for workspace in range(10, 40)]
    turns = Turns()
    found = [run for _ in range(15) for run in await claimed(database, 2, turns)]
    assert found == runs


@pytest.mark.parametrize(
    ("workspaces", "permits"), [(3, 2), (4, 2), (7, 3), (49, 50), (50, 50), (51, 50), (100, 50), (101, 50)]
)
async def test_each_workspace_has_its_turn_before_any_has_its_second(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any], workspaces: int, permits: int
) -> None:
    runs = {put(owner, workspace, clock.now()): workspace for workspace in [*range(1, workspaces + 1)] * 2}
    turns, served = Turns(), list[int]()
    while found := await claimed(database, permits, turns):
        served += [runs[run] for run in found]
    assert len(served) == 2 * workspaces
    if permits < workspaces:
        assert sorted(served[:workspaces]) == list(range(1, workspaces + 1))


async def test_few_workspaces_are_asked_for_once_by_each_claim(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[UUID] = []
    ask = run_queue.workspaces_with_work

    async def noted(*args: Any) -> Any:
        asked.append(args[3])
        return await ask(*args)

    monkeypatch.setattr(run_queue, "workspaces_with_work", noted)
    for workspace in [1, 2, 3] * 3:
        put(owner, workspace, clock.now())
    turns = Turns()
    assert [len(await claimed(database, 3, turns)) for _ in range(3)] == [3, 3, 3]
    assert asked == [FIRST_ID] * 3


async def test_after_a_small_claim_only_the_next_one_asks_for_workspaces_twice(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for workspace in [1, 2, 3] * 4:
        put(owner, workspace, clock.now())
    turns = Turns()
    assert len(await claimed(database, 1, turns)) == 1
    assert len(await claimed(database, 3, turns)) == 3  # of the second, the third and the first
    asked: list[UUID] = []
    ask = run_queue.workspaces_with_work

    async def noted(*args: Any) -> Any:
        asked.append(args[3])
        return await ask(*args)

    monkeypatch.setattr(run_queue, "workspaces_with_work", noted)
    assert [len(await claimed(database, 3, turns)) for _ in range(2)] == [3, 3]
    assert asked == [FIRST_ID] * 2


async def test_a_workspace_that_a_freeze_has_just_begun_in_hides_nobody_behind_it(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    runs = [put(owner, workspace, clock.now()) for workspace in (1, 2, 3)]
    owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'two', 'Two', now())",
        [UUID(int=2)],
    )
    owner.execute(
        "INSERT INTO foliot.freezes (workspace_id, id, scope, start_at, after, reason, created_by, created_at, is_start_pending)"
        " VALUES (%s, %s, '{}', %s, 'skip', '', 'ana', %s, true)",
        [UUID(int=2), uuid4(), clock.now(), clock.now()],
    )
    turns = Turns()
    assert [await claimed(database, 1, turns) for _ in range(3)] == [[runs[0]], [runs[2]], []]


async def test_who_waits_with_one_run_has_its_turn_beside_who_waits_with_hundreds(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    crowd = {put(owner, 10, clock.now()) for _ in range(300)}
    clock.advance(timedelta(minutes=1))
    late = {put(owner, workspace, clock.now()) for workspace in (5, 20, 30)}
    turns = Turns()
    first = set(await claimed(database, 8, turns))
    assert late < first
    assert len(first & crowd) == 2  # its share, and the next claim comes at once


async def test_a_job_with_a_run_too_many_keeps_its_neighbours_from_no_turn(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    """A claim that met it begins again with those whose turn it was, and not with those behind them."""
    leased = put(owner, 1, clock.now(), job_id=UUID(int=7))
    assert await claimed(database, 1, Turns()) == [leased]
    put(owner, 1, clock.now(), job_id=UUID(int=7))
    neighbour = put(owner, 2, clock.now())
    for workspace in (3, 4) * 10:
        put(owner, workspace, clock.now())
    turns = Turns()
    found = [run for _ in range(3) for run in await claimed(database, 2, turns)]
    assert neighbour in found
