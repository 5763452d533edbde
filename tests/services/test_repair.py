"""Timers and counts that should never be wrong: found, put right, and left alone where they are not."""

from __future__ import annotations

import asyncio
import logging
from datetime import time, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.policy import Overlap, OverlapRule
from foliot.domain.schedule import Cron, Interval, IntervalMode, Once, Otherwise, Window
from foliot.services.runs import history
from foliot.services.scheduling.repair import RepairResult, repair_runs, repair_timers
from foliot.services.scheduling.tick import tick
from foliot.storage.server import RetryPeriod
from foliot.storage.tx import Database
from foliot.testing.clock import NOON, ManualClock
from tests.services.builders import (
    HOURLY,
    MANUAL,
    MINUTELY,
    Owner,
    advance_and_tick,
    claim_runs,
    create_job,
    report_runs,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
QUEUE = Overlap(OverlapRule.QUEUE)


def timer(owner: Owner, job_id: JobId, columns: str) -> tuple[Any, ...]:
    found = owner.execute(f"SELECT {columns} FROM foliot.timers WHERE job_id = %s", [job_id]).fetchone()
    assert found is not None
    return tuple(found)


async def statuses(database: Database, workspace: WorkspaceId, job_id: JobId) -> list[RunStatus]:
    return [run.status for run in (await history.of_job(database, Scope(workspace), job_id)).items]


async def until_somebody_waits(owner: Owner) -> None:
    waiting = RetryPeriod(30)
    while owner.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
        assert await asyncio.to_thread(waiting.again)


async def test_what_is_right_is_left_alone(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    """A job of every kind, at every stage of its life."""
    clock.set(NOON + timedelta(minutes=1))
    opening = Window(time(20), time(22), frozenset(range(7)), Otherwise.DEFER)
    await create_job(database, workspace, Cron("30 9 * * *", "America/New_York"))
    await create_job(database, workspace, Cron("H * * * *", spread=HOUR / 4))
    await create_job(database, workspace, Interval(HOUR, timezone="Asia/Kathmandu"))
    await create_job(database, workspace, HOURLY, window=opening)
    await create_job(database, workspace, HOURLY, overlap=QUEUE)
    await create_job(database, workspace, HOURLY, overlap=Overlap(OverlapRule.CONCURRENT))
    await create_job(database, workspace, HOURLY, max_runs=1)
    await create_job(database, workspace, HOURLY, start_at=NOON + DAY, end_at=NOON + 2 * DAY)
    await create_job(database, workspace, HOURLY, tags=("frozen",))
    await create_job(database, workspace, Once(NOON + HOUR / 2))
    await create_job(database, workspace, Once(NOON + DAY))
    await create_job(database, workspace, Interval(HOUR / 3, mode=IntervalMode.FIXED_DELAY))
    await create_job(database, workspace, MANUAL)
    await create_job(database, workspace, MANUAL, end_at=NOON + DAY)
    paused = await create_job(database, workspace, HOURLY)
    owner.execute(
        "UPDATE foliot.timers SET status = 'paused', due_at = 'infinity' WHERE job_id = %s", [paused]
    )
    owner.execute(
        "INSERT INTO foliot.freezes (workspace_id, id, scope, start_at, after, reason, created_by, created_at)"
        " VALUES (%s, %s, '{\"tags\": [\"frozen\"]}', %s, 'latest', '', 'test', %s)",
        [workspace, uuid4(), NOON, NOON],
    )

    async def untouched() -> bool:
        before = owner.execute("SELECT t FROM foliot.timers AS t ORDER BY job_id").fetchall()
        steps = [await repair_runs(database), await repair_timers(database, limit=4)]
        while not steps[-1].is_complete:
            steps.append(await repair_timers(database, limit=4))
        after = owner.execute("SELECT t FROM foliot.timers AS t ORDER BY job_id").fetchall()
        return sum(step.repaired for step in steps) == 0 and after == before

    assert await untouched()
    await advance_and_tick(database, clock, 2 * HOUR)
    assert await untouched()
    taken = await claim_runs(database, 6)
    assert await untouched()
    await advance_and_tick(database, clock, HOUR)
    assert await untouched()
    await report_runs(database, taken[:3])
    assert await untouched()
    await advance_and_tick(database, clock, 8 * HOUR)
    assert await untouched()
    await report_runs(database, taken[3:])
    await report_runs(database, await claim_runs(database))
    await advance_and_tick(database, clock, 2 * DAY)
    assert await untouched()


@pytest.mark.requirement("X-3")
@pytest.mark.parametrize("due_at", ["infinity", "2040-01-01T00:00:00Z", "2027-01-15T12:59:00Z"])
async def test_a_timer_set_to_the_wrong_time_is_set_right(
    database: Database,
    owner: Owner,
    clock: ManualClock,
    workspace: WorkspaceId,
    caplog: pytest.LogCaptureFixture,
    due_at: str,
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    owner.execute("UPDATE foliot.timers SET due_at = %s", [due_at])
    with caplog.at_level(logging.WARNING):
        assert (await repair_timers(database)).repaired == 1
    (reported,) = [record for record in caplog.records if record.message == "timer.repaired"]
    assert reported.__dict__["after"]["due_at"] == (NOON + HOUR).isoformat()
    assert timer(owner, job_id, "due_at, next_at") == (NOON + HOUR, NOON + HOUR)
    assert (await repair_timers(database)).repaired == 0
    clock.advance(HOUR)
    assert (await tick(database)).recorded == 1


async def test_what_passed_while_the_timer_slept_is_recorded_by_the_tick(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    owner.execute("UPDATE foliot.timers SET due_at = 'infinity'")
    await advance_and_tick(database, clock, 5 * HOUR + HOUR / 2)
    assert await statuses(database, workspace, job_id) == []
    assert (await repair_timers(database)).repaired == 1
    await advance_and_tick(database, clock, timedelta(0))
    newest, gap = (await history.of_job(database, Scope(workspace), job_id)).items
    assert (newest.planned_for, newest.status) == (NOON + 5 * HOUR, RunStatus.READY)
    assert (gap.count, gap.status) == (4, RunStatus.SKIPPED)


async def test_a_job_whose_time_is_over_unnoticed_is_ended_by_the_tick(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await create_job(database, workspace, HOURLY, end_at=NOON + 2 * HOUR)
    owner.execute("UPDATE foliot.timers SET due_at = 'infinity', cursor_at = %s", [NOON + 2 * HOUR])
    clock.advance(3 * HOUR)
    assert (await repair_timers(database)).repaired == 1
    await tick(database)
    assert owner.execute("SELECT status FROM foliot.jobs").fetchone() == ("expired",)


async def test_a_count_of_live_runs_that_are_nowhere_is_put_right_and_the_runs_end(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    owner.execute("DELETE FROM foliot.ready")
    assert (await repair_timers(database)).repaired == 1
    assert timer(owner, job_id, "live, waiting, live_run_id") == (0, 0, None)
    (lost,) = (await history.of_job(database, Scope(workspace), job_id)).items
    assert (lost.status, lost.error and lost.error.code) == (RunStatus.INTERRUPTED, "run_lost")
    await advance_and_tick(database, clock, HOUR)
    assert await statuses(database, workspace, job_id) == [RunStatus.READY, RunStatus.INTERRUPTED]


async def test_a_fixed_delay_whose_run_vanished_goes_on(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, Interval(HOUR, mode=IntervalMode.FIXED_DELAY))
    await advance_and_tick(database, clock, HOUR)
    owner.execute("DELETE FROM foliot.ready")
    assert (await repair_timers(database)).repaired == 1
    assert timer(owner, job_id, "live, due_at") == (0, NOON + 2 * HOUR)


@pytest.mark.parametrize("is_claimed", [True, False])
async def test_a_live_run_that_its_timer_forgot_is_remembered(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId, is_claimed: bool
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    (run,) = (await history.of_job(database, Scope(workspace), job_id)).items
    if is_claimed:
        await claim_runs(database)
    owner.execute("UPDATE foliot.timers SET live = 0, live_run_id = NULL")
    assert (await repair_timers(database)).repaired == 0, "a timer alone cannot tell"
    assert (await repair_runs(database)).repaired == 1
    assert timer(owner, job_id, "live, live_run_id") == (1, run.id)
    await advance_and_tick(database, clock, HOUR)
    assert (await statuses(database, workspace, job_id))[0] is RunStatus.SKIPPED


async def test_runs_that_wait_behind_nobody_get_their_turn(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, overlap=QUEUE)
    for _ in range(3):
        await advance_and_tick(database, clock, HOUR)
    owner.execute("DELETE FROM foliot.ready")
    assert (await repair_timers(database)).repaired == 1
    assert await statuses(database, workspace, job_id) == [
        RunStatus.WAITING,
        RunStatus.READY,
        RunStatus.INTERRUPTED,
    ]
    assert timer(owner, job_id, "live, waiting") == (1, 1)
    await report_runs(database, await claim_runs(database))
    await report_runs(database, await claim_runs(database))
    assert timer(owner, job_id, "live, waiting, live_run_id") == (0, 0, None)


async def test_a_count_of_waiting_runs_is_put_right(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, overlap=QUEUE)
    for _ in range(3):
        await advance_and_tick(database, clock, HOUR)
    owner.execute("UPDATE foliot.timers SET waiting = 7")
    assert (await repair_timers(database)).repaired == 1
    assert timer(owner, job_id, "live, waiting") == (1, 2)
    owner.execute("UPDATE foliot.timers SET waiting = 0")
    assert (await repair_runs(database)).repaired == 1
    assert timer(owner, job_id, "live, waiting") == (1, 2)


async def test_a_run_that_is_over_is_taken_out_of_line(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    owner.execute("UPDATE foliot.runs SET status = 'cancelled', finished_at = %s", [clock.now()])
    assert (await repair_runs(database)).repaired == 2  # the row in line and the timer's count
    assert await claim_runs(database) == []
    assert timer(owner, job_id, "live, live_run_id") == (0, None)
    assert await statuses(database, workspace, job_id) == [RunStatus.CANCELLED]


async def test_a_spec_that_cannot_be_read_is_written_anew_or_its_job_fails_alone(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    torn = await create_job(database, workspace, HOURLY)
    lost = await create_job(database, workspace, HOURLY)
    whole = await create_job(database, workspace, HOURLY)
    owner.execute("UPDATE foliot.timers SET spec = '{\"schedule\":' WHERE job_id = ANY (%s)", [[torn, lost]])
    owner.execute("UPDATE foliot.jobs SET definition = '{\"spec\": 7}' WHERE id = %s", [lost])
    clock.advance(HOUR + timedelta(minutes=5))
    step = await repair_timers(database, limit=1)  # what is due is looked at first, wherever the round stands
    assert (step.late, step.repaired) == (3, 2)
    await advance_and_tick(database, clock, timedelta(0))
    assert len(await statuses(database, workspace, torn)) == 1
    assert len(await statuses(database, workspace, whole)) == 1
    found = owner.execute("SELECT status FROM foliot.jobs WHERE id = %s", [lost]).fetchone()
    assert found == ("failed",)


async def test_a_round_over_timers_begins_again_at_its_end(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    for _ in range(5):
        await create_job(database, workspace, MINUTELY)
    owner.execute("UPDATE foliot.timers SET due_at = 'infinity'")
    steps = [await repair_timers(database, limit=2) for _ in range(4)]
    assert [step.repaired for step in steps] == [2, 2, 1, 0]
    assert [step.is_complete for step in steps] == [False, False, True, False]
    assert [step.is_more for step in steps] == [True, True, False, False]


async def test_two_nodes_do_not_make_the_same_round(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    with owner.transaction():
        owner.execute("SELECT FROM foliot.scans FOR UPDATE")
        assert await repair_timers(database) == await repair_runs(database) == RepairResult()


async def test_a_timer_put_right_while_the_repair_waits_for_it_is_left_alone(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    owner.execute("UPDATE foliot.timers SET due_at = 'infinity'")
    with owner.transaction():
        owner.execute("UPDATE foliot.timers SET due_at = next_at")
        repairing = asyncio.create_task(repair_timers(database))
        await until_somebody_waits(owner)
        version = timer(owner, job_id, "version")
    assert (await repairing).repaired == 0
    assert timer(owner, job_id, "version") == version
