"""Events and transactions that end in another order than they began: no reader misses one, nothing is sent twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection

from foliot.domain.access import Actor, Scope
from foliot.domain.ids import WorkspaceId
from foliot.services.jobs import job_status, jobs
from foliot.services.messaging import events
from foliot.services.messaging.events import EventFilter, EventPosition
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.service_driver import ServiceDriver, definition

pytestmark = pytest.mark.anyio
Two = tuple[AsyncConnection[Any], AsyncConnection[Any]]
ALL = EventFilter()
WRITERS, JOBS = 6, 10


async def tell(hand: AsyncConnection[Any], workspace: WorkspaceId, clock: ManualClock, kind: str) -> None:
    await hand.execute(
        "INSERT INTO foliot.events (workspace_id, at, kind) VALUES (%s, %s, %s)",
        [workspace, clock.now(), kind],
    )


async def reported(
    database: Database, workspace: WorkspaceId, place: EventPosition, count: int = 0
) -> tuple[list[str], EventPosition]:
    """What is sent by now; of `count` it is known that they come, once the transactions of other tests on this server have ended."""
    found: list[str] = []
    async with asyncio.timeout(30):
        while True:
            batch = await events.after(database, workspace, place, ALL)
            found += [each.kind for each in batch.events]
            place = batch.place
            if len(found) >= count:
                return found, place


async def test_what_commits_late_is_reported_late_and_not_passed_over(
    database: Database, workspace: WorkspaceId, clock: ManualClock, two_connections: Two
) -> None:
    left, right = two_connections
    place = (await events.listen(database, workspace)).place
    await tell(left, workspace, clock, "job.first")
    await tell(right, workspace, clock, "job.second")
    await right.commit()
    nothing, place = await reported(database, workspace, place)
    assert nothing == []
    await left.commit()
    found, place = await reported(database, workspace, place, 2)
    assert found == ["job.first", "job.second"]
    assert (await reported(database, workspace, place))[0] == []


async def test_a_number_taken_first_may_be_written_last(
    database: Database, workspace: WorkspaceId, clock: ManualClock, two_connections: Two
) -> None:
    """The transaction that began first gets the later place in the sequence, and commits last."""
    left, right = two_connections
    place = (await events.listen(database, workspace)).place
    await left.execute("SELECT pg_current_xact_id()")
    await tell(right, workspace, clock, "job.of_the_second")
    await right.commit()
    assert (await reported(database, workspace, place))[0] == []
    await tell(left, workspace, clock, "job.of_the_first")
    await left.commit()
    found, _ = await reported(database, workspace, place, 2)
    assert found == ["job.of_the_first", "job.of_the_second"]


async def test_one_that_is_rolled_back_is_never_sent_and_holds_up_nobody(
    database: Database, workspace: WorkspaceId, clock: ManualClock, two_connections: Two
) -> None:
    left, right = two_connections
    place = (await events.listen(database, workspace)).place
    await tell(left, workspace, clock, "job.first")
    await tell(right, workspace, clock, "job.second")
    await left.rollback()
    await right.commit()
    assert (await reported(database, workspace, place, 1))[0] == ["job.second"]


async def test_readers_beside_busy_writers_see_everything_once(
    database: Database, workspace: WorkspaceId, login_url: str, clock: ManualClock, driver: ServiceDriver
) -> None:
    """Jobs are made and paused by many callers at once, while a reader reads in small batches from another node."""
    start = (await events.listen(database, workspace)).place
    writing = asyncio.Event()
    seen: list[tuple[str, str]] = []

    async def read() -> None:
        place = start
        async with Database(login_url, clock=clock) as other:
            while True:
                is_over = writing.is_set()
                batch = await events.after(other, workspace, place, ALL, limit=7)
                seen.extend((each.kind, str(each.job_id)) for each in batch.events)
                place = batch.place
                if is_over and not batch.events and len(seen) >= 2 * WRITERS * JOBS:
                    return

    async def write() -> list[str]:
        made = []
        for _ in range(JOBS):
            job = await jobs.create(database, Scope(workspace, Actor("ana")), definition())
            await job_status.pause(database, Scope(workspace, Actor("ana")), job.id)
            made.append(str(job.id))
        return made

    reading = asyncio.create_task(read())
    made = [job for found in await asyncio.gather(*(write() for _ in range(WRITERS))) for job in found]
    writing.set()
    async with asyncio.timeout(30):
        await reading
    assert sorted(seen) == sorted((kind, job) for job in made for kind in ("job.created", "job.paused"))
    for job in made:
        assert [kind for kind, each in seen if each == job] == ["job.created", "job.paused"]
