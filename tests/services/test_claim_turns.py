"""Whose turn it is: a claim goes on to those who have something to do now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from foliot.services.claim import Turns, claim
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.given import WORKER, enlist

pytestmark = pytest.mark.anyio


def put(owner: psycopg.Connection[Any], workspace: int, available_at: object) -> UUID:
    run_id = uuid4()
    owner.execute(
        "INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive,"
        " timeout, trigger) VALUES (%s, %s, %s, 'default', 'python', 0, %s, %s, true, '1 min', 'schedule')",
        [UUID(int=workspace), run_id, uuid4(), available_at, available_at],
    )
    return run_id


@pytest.fixture(autouse=True)
def worker(owner: psycopg.Connection[Any]) -> None:
    enlist(owner, WORKER)


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
