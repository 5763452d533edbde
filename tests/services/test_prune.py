"""Retention: only what is beyond it goes, only what is counted goes, and nobody waits for it."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import JobId, WorkspaceId, uuid7
from foliot.domain.outcomes import Cancelled, Failed
from foliot.domain.policy import (
    Breaker,
    BreakerAction,
    Overlap,
    OverlapRule,
    Retention,
    RetentionMode,
)
from foliot.domain.run import RunError
from foliot.services.runs.retention import Pruned, prune
from foliot.services.runs.statistics import job_stats, roll_up
from foliot.services.scheduling.repair import repair_runs, repair_timers
from foliot.services.scheduling.tick import tick
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.clock import NOON, ManualClock
from tests.domain.retention_model import may_prune
from tests.examples import seeds
from tests.services.builders import (
    HOURLY,
    SUCCEEDED,
    Owner,
    advance_and_tick,
    claim_runs,
    create_job,
    report_runs,
)

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BROKEN = Failed(RunError("boom", "It broke."))


def past(
    owner: Owner, workspace: WorkspaceId, job_id: JobId, ages: list[timedelta], *, status: str = "succeeded"
) -> list[UUID]:
    """Records of long ago, newest first, each with an attempt."""
    made = []
    for place, age in enumerate(ages):
        at = NOON - age
        run_id = uuid7(at, job_id.bytes[10:] + place.to_bytes(4, "big"))
        made.append(run_id)
        reason = "overlap" if status == "skipped" else None
        owner.execute(
            "INSERT INTO foliot.runs (workspace_id, id, job_id, number, trigger, status, skip_reason, planned_for, planned_key,"
            " schedule_rev, created_at, started_at, finished_at, attempt_count)"
            " VALUES (%s, %s, %s, %s, 'schedule', %s, %s, %s, %s, 1, %s, %s, %s, 1)",
            [
                workspace,
                run_id,
                job_id,
                len(ages) - place,
                status,
                reason,
                at,
                at.replace(tzinfo=None),
                at,
                at,
                at,
            ],
        )
        owner.execute(
            "INSERT INTO foliot.attempts (workspace_id, run_id, number, status, worker_id, fence, leased_at, ended_at)"
            " VALUES (%s, %s, 1, 'succeeded', %s, 1, %s, %s)",
            [workspace, run_id, run_id, at, at],
        )
    owner.execute(
        "UPDATE foliot.timers SET number = greatest(number, %s) WHERE job_id = %s", [len(ages), job_id]
    )
    return made


def left(owner: Owner, job_id: JobId) -> list[UUID]:
    rows = owner.execute(
        "SELECT id FROM foliot.runs WHERE job_id = %s ORDER BY planned_for DESC, id DESC", [job_id]
    )
    return [row[0] for row in rows]


async def counted(database: Database) -> None:
    while (await roll_up(database)).is_more:
        pass


async def pruned(database: Database, **bounds: Any) -> Pruned:
    runs = attempts = 0
    step = Pruned(is_complete=False)
    while not step.is_complete:
        step = await prune(database, **bounds)
        runs, attempts = runs + step.runs, attempts + step.attempts
    return Pruned(runs, attempts)


@pytest.mark.requirement("C-8", "S4-14", "S4-AC-10")
@pytest.mark.parametrize("mode", list(RetentionMode))
@pytest.mark.parametrize(("keep", "keep_last"), [(10, 5), (3, 20), (25, 3), (1, 1), (100, 100)])
async def test_what_goes_is_what_the_policy_lets_go(
    database: Database,
    owner: Owner,
    clock: ManualClock,
    workspace: WorkspaceId,
    mode: RetentionMode,
    keep: int,
    keep_last: int,
) -> None:
    retention = Retention(keep * DAY, keep_last, mode)
    job_id = await create_job(database, workspace, HOURLY, retention=retention)
    ages = [n * DAY + HOUR for n in range(1, 31)]
    made = past(owner, workspace, job_id, ages)
    await counted(database)
    stays = [
        run
        for rank, (run, age) in enumerate(zip(made, ages, strict=True), 1)
        if not may_prune(retention, NOON - age, rank, NOON)
    ]
    gone = await pruned(database, most=4)
    assert left(owner, job_id) == stays
    assert gone == Pruned(30 - len(stays), 30 - len(stays))
    assert owner.execute("SELECT count(*) FROM foliot.attempts").fetchone() == (len(stays),)
    assert (await pruned(database)).runs == 0


@pytest.mark.requirement("S1-NFR-004")
async def test_by_default_ninety_days_and_the_last_hundred_both_stay(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    rare = await create_job(database, workspace, HOURLY)
    often = await create_job(database, workspace, HOURLY)
    past(owner, workspace, rare, [n * 30 * DAY for n in range(1, 90)])
    past(owner, workspace, often, [n * DAY for n in range(1, 131)])
    await counted(database)
    await pruned(database)
    assert (len(left(owner, rare)), len(left(owner, often))) == (89, 100)


async def test_what_was_deleted_is_still_in_the_statistics(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retention=Retention(DAY, 1))
    past(owner, workspace, job_id, [n * HOUR for n in range(13, 200)])
    past(owner, workspace, job_id, [n * HOUR + HOUR / 2 for n in range(13, 200)], status="skipped")
    before = await job_stats(database, Scope(workspace), job_id)
    await counted(database)
    assert (await pruned(database, most=50)).runs > 300
    after = await job_stats(database, Scope(workspace), job_id)
    assert (after.totals, after.days) == (before.totals, before.days)


async def test_nothing_goes_before_its_day_is_added_up(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retention=Retention(DAY, 1))
    past(owner, workspace, job_id, [n * DAY for n in range(2, 10)])
    assert (await pruned(database)).runs == 0
    await counted(database)
    assert (await pruned(database)).runs == 7


async def test_an_open_run_stays_and_so_does_one_that_ended_uncounted(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retention=Retention(HOUR, 1, RetentionMode.ANY))
    await advance_and_tick(database, clock, HOUR)
    (run,) = await claim_runs(database)
    for _ in range(5):
        await advance_and_tick(database, clock, HOUR)  # skipped behind it
    clock.advance(3 * DAY)
    await counted(database)
    assert (await pruned(database)).runs == 5
    assert left(owner, job_id) == [run.run_id]
    owner.execute(
        "UPDATE foliot.runs SET status = 'succeeded', finished_at = %s, attempt_count = 1",
        [clock.now() - 2 * HOUR],
    )
    assert (await pruned(database)).runs == 0
    await counted(database)
    assert (await pruned(database)).runs == 1


async def test_a_record_somebody_holds_is_left_for_the_next_time(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retention=Retention(DAY, 1))
    made = past(owner, workspace, job_id, [n * DAY for n in range(2, 10)])
    await counted(database)
    with owner.transaction():
        owner.execute("SELECT FROM foliot.runs WHERE id = %s FOR UPDATE", [made[4]])
        assert (await pruned(database)).runs == 6
    assert (await pruned(database)).runs == 1


async def test_firing_goes_on_while_pruning_has_not_committed(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retention=Retention(DAY, 1))
    past(owner, workspace, job_id, [n * DAY for n in range(2, 10)])
    clock.advance(HOUR)
    with owner.transaction():
        owner.execute("DELETE FROM foliot.runs WHERE planned_for < %s", [NOON - 3 * DAY])
        owner.execute("SELECT FROM foliot.scans FOR UPDATE")
        assert (await tick(database)).recorded == 1
        assert await prune(database) == Pruned()
    assert len(await claim_runs(database)) == 1


async def test_a_round_is_taken_up_where_it_was_left(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    for _ in range(7):
        job_id = await create_job(database, workspace, HOURLY, retention=Retention(DAY, 1))
        past(owner, workspace, job_id, [2 * DAY, 3 * DAY])
    await counted(database)
    steps = [await prune(database, jobs=3) for _ in range(3)]
    assert [step.runs for step in steps] == [3, 3, 1]
    assert [step.is_complete for step in steps] == [False, False, True]
    assert owner.execute("SELECT count(*) FROM foliot.runs").fetchone() == (7,)


@pytest.mark.requirement("C-3")
@seeds(4)
async def test_whatever_happens_the_statistics_agree_with_the_counters_and_nothing_needs_repair(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId, seed: int
) -> None:
    """Ten days of firing, skipping, failing, adding up and pruning in any order."""
    chance = Random(seed)
    rules = (OverlapRule.SKIP, OverlapRule.QUEUE, OverlapRule.CONCURRENT)
    made = [
        await create_job(
            database,
            workspace,
            HOURLY,
            overlap=Overlap(rule, max_queued=3),
            breaker=Breaker(action=BreakerAction.NONE),
            retention=Retention(2 * DAY, 5, RetentionMode.ANY),
        )
        for rule in rules
    ]
    held: list[Claimed] = []
    for _ in range(160):
        await advance_and_tick(database, clock, chance.choice((HOUR / 2, HOUR, 5 * HOUR)))
        match chance.randrange(5):
            case 0 | 1:
                held += await claim_runs(database, chance.randrange(1, 6))
            case 2 | 3:
                outcome = chance.choice((SUCCEEDED, BROKEN, Cancelled()))
                ending, held = held[:3], held[3:]
                await report_runs(database, ending, outcome)
            case _:
                await roll_up(database, chance.randrange(1, 40))
                await prune(database, jobs=2, most=chance.randrange(1, 20))
                assert (await repair_timers(database)).repaired == 0
                assert (await repair_runs(database)).repaired == 0
    await counted(database)
    await pruned(database)
    for job_id in made:
        totals = (await job_stats(database, Scope(workspace), job_id)).totals
        reported = owner.execute(
            "SELECT run_count, success_count, failure_count, skip_count FROM foliot.timers WHERE job_id = %s",
            [job_id],
        ).fetchone()
        assert (totals.runs, totals.successes, totals.failures, totals.skips) == reported
    found = owner.execute("SELECT count(DISTINCT day) FROM foliot.job_days").fetchone()
    assert found is not None
    assert found[0] > 5
