"""Workers that beat, fall silent, overrun or ignore a cancel: what becomes of their runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkerId, WorkspaceId
from foliot.domain.outcomes import Succeeded
from foliot.domain.policy import Limits, OnLost
from foliot.domain.schedule import Interval
from foliot.services.jobs import jobs
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import CANCEL_GRACE, DEADLINE_SLACK, SweepResult, sweep
from foliot.services.workers import workers
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, claim, claim_work
from foliot.services.workers.overview import unserved
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST

pytestmark = pytest.mark.anyio
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
Owner = psycopg.Connection[Any]


@pytest.fixture
async def worker(database: Database, clock: ManualClock, workspace: WorkspaceId) -> WorkerId:
    """One worker, and a daily job with a timeout of an hour whose run is ready."""
    limits = Limits(timeout=timedelta(hours=1))
    await jobs.create(
        database, Scope(workspace, TEST), Definition("daily", Spec(Interval(DAY), "python", limits=limits))
    )
    clock.advance(DAY)
    await tick(database)
    return await workers.register(database, "one", ["default"], ["python"], 10)


async def take(database: Database, worker: WorkerId) -> Claimed:
    [mine] = await claim(database, worker, "default", ["python"], 10, Turns())
    return mine


def success(mine: Claimed, worker: WorkerId) -> Report:
    return Report(mine.run_id, mine.job_id, mine.fence, worker, Succeeded())


async def test_a_worker_that_beats_keeps_its_runs(
    database: Database, clock: ManualClock, worker: WorkerId
) -> None:
    mine = await take(database, worker)
    for _ in range(10):
        clock.advance(workers.LEASE)
        assert (await workers.beat(database, worker)).is_alive
        assert await sweep(database) == SweepResult()
    assert await report(database, [success(mine, worker)]) == {mine.run_id}


async def test_a_worker_is_alive_through_the_last_instant_of_its_lease(
    database: Database, clock: ManualClock, worker: WorkerId
) -> None:
    clock.advance(workers.LEASE)
    assert (await sweep(database)).struck_off == 0
    assert (await workers.beat(database, worker)).is_alive
    clock.advance(workers.LEASE + timedelta(microseconds=1))
    assert not (await workers.beat(database, worker)).is_alive
    assert (await sweep(database)).struck_off == 1


@pytest.mark.requirement("S2-6")
async def test_a_silent_worker_is_struck_off_and_its_run_repeated_under_a_higher_fence(
    database: Database, clock: ManualClock, worker: WorkerId, owner: Owner
) -> None:
    mine = await take(database, worker)
    clock.advance(workers.LEASE + SECOND)
    assert await sweep(database) == SweepResult(struck_off=1, lost=1)
    assert await workers.beat(database, worker) == workers.HeartbeatReply(is_alive=False)
    assert await report(database, [success(mine, worker)]) == frozenset()
    clock.advance(SECOND)
    other = await workers.register(database, "one", ["default"], ["python"], 10)
    again = await take(database, other)
    assert other != worker
    assert (again.run_id, again.fence) == (mine.run_id, mine.fence + 1)
    assert owner.execute("SELECT number, status, fence FROM foliot.attempts").fetchall() == [(1, "lost", 1)]


async def test_a_worker_past_its_lease_cannot_come_back_even_before_anybody_noticed(
    database: Database, clock: ManualClock, worker: WorkerId
) -> None:
    clock.advance(workers.LEASE + SECOND)
    assert not (await workers.beat(database, worker)).is_alive


async def test_who_leaves_with_runs_in_hand_has_abandoned_them(database: Database, worker: WorkerId) -> None:
    await take(database, worker)
    await workers.leave(database, worker)
    assert await sweep(database) == SweepResult(lost=1)


@pytest.mark.requirement("C-17", "S1-EC-3", "S4-24", "S4-AC-9")
async def test_the_third_loss_ends_the_run_as_interrupted(
    database: Database, clock: ManualClock, worker: WorkerId, owner: Owner
) -> None:
    for _ in range(3):
        await take(database, worker)
        await workers.leave(database, worker)
        await sweep(database)
        clock.advance(SECOND)
        worker = await workers.register(database, "next", ["default"], ["python"], 10)
    assert owner.execute("SELECT status, error->>'code', attempt_count FROM foliot.runs").fetchall() == [
        ("interrupted", "worker_lost", 3)
    ]


@pytest.mark.requirement("S1-EC-3")
async def test_with_on_lost_fail_a_run_is_never_repeated(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    limits = Limits(on_lost=OnLost.FAIL)
    await jobs.create(
        database, Scope(workspace, TEST), Definition("once", Spec(Interval(DAY), "python", limits=limits))
    )
    clock.advance(DAY)
    await tick(database)
    worker = await workers.register(database, "one", ["default"], ["python"], 10)
    await take(database, worker)
    await workers.leave(database, worker)
    assert await sweep(database) == SweepResult(lost=1)
    assert owner.execute("SELECT status FROM foliot.runs").fetchall() == [("interrupted",)]


@pytest.mark.requirement("S2-6")
async def test_a_run_past_its_deadline_is_timed_out_though_its_worker_lives(
    database: Database, clock: ManualClock, worker: WorkerId, owner: Owner
) -> None:
    mine = await take(database, worker)
    clock.set(mine.deadline_at + DEADLINE_SLACK)
    owner.execute("UPDATE foliot.workers SET alive_until = %s", [clock.now() + DAY])
    assert await sweep(database) == SweepResult()
    clock.advance(SECOND)
    assert await sweep(database) == SweepResult(timed_out=1)
    assert await report(database, [success(mine, worker)]) == frozenset()


async def test_a_cancel_is_heard_with_the_next_beat_and_forced_after_its_grace(
    database: Database, clock: ManualClock, worker: WorkerId, owner: Owner
) -> None:
    mine = await take(database, worker)
    owner.execute("UPDATE foliot.leases SET cancel_requested_at = %s", [clock.now()])
    owner.execute("UPDATE foliot.workers SET alive_until = %s", [clock.now() + DAY])
    assert (await workers.beat(database, worker)).cancels == [(mine.run_id, mine.fence)]
    clock.advance(CANCEL_GRACE)
    owner.execute("UPDATE foliot.workers SET alive_until = %s", [clock.now() + DAY])
    assert await sweep(database) == SweepResult()
    clock.advance(SECOND)
    assert await sweep(database) == SweepResult(cancelled=1)
    assert owner.execute("SELECT status FROM foliot.runs").fetchall() == [("cancelled",)]


async def test_full_batches_say_that_there_may_be_more(database: Database, worker: WorkerId) -> None:
    await take(database, worker)
    await workers.leave(database, worker)
    assert await sweep(database, limit=1) == SweepResult(lost=1, is_full=True)


async def test_a_worker_that_was_struck_off_or_has_left_claims_nothing(
    database: Database, clock: ManualClock, worker: WorkerId
) -> None:
    clock.advance(workers.LEASE + SECOND)
    assert await claim(database, worker, "default", ["python"], 10, Turns()) == []
    await sweep(database)
    assert await claim(database, worker, "default", ["python"], 10, Turns()) == []
    again = await workers.register(database, "one", ["default"], ["python"], 10)
    await workers.leave(database, again)
    assert await claim(database, again, "default", ["python"], 10, Turns()) == []
    third = await workers.register(database, "one", ["default"], ["python"], 10)
    assert len(await claim(database, third, "default", ["python"], 10, Turns())) == 1


async def test_a_worker_of_all_queues_serves_each_in_its_turn(
    database: Database, clock: ManualClock, workspace: WorkspaceId, worker: WorkerId
) -> None:
    for queue in ("mail", "mail", "video"):
        spec = Spec(Interval(DAY), "python", queue=queue)
        await jobs.create(database, Scope(workspace, TEST), Definition("daily", spec))
    clock.advance(DAY)
    await tick(database)
    every = await workers.register(database, "all", ["*"], ["python"], 10)
    assert await unserved(database, workspace, timedelta(0)) == []
    claimer, found = Claimer(every, "*", ["python"], ClaimSize(1), Turns()), []
    while claimed := (await claim_work(database, claimer)).work:
        found += claimed
    specs = [(await jobs.get(database, workspace, each.claimed.job_id)).definition.spec for each in found]
    assert [spec.queue for spec in specs] == ["default", "mail", "video", "mail"]


async def test_a_queue_that_is_new_is_found_when_those_that_are_known_are_empty(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    every = await workers.register(database, "all", ["*"], ["python"], 10, lease=9 * DAY)
    claimer = Claimer(every, "*", ["python"], ClaimSize(1), Turns())
    for queue in ("mail", "video"):
        spec = Spec(Interval(DAY), "python", queue=queue)
        await jobs.create(database, Scope(workspace, TEST), Definition("daily", spec))
        clock.advance(DAY)
        await tick(database)
        [found] = (
            await claim_work(database, claimer)
        ).work  # all it asked for: it need not ask for queues next
        assert (await jobs.get(database, workspace, found.claimed.job_id)).definition.spec.queue == queue
