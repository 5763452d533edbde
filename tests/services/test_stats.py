"""Statistics and the roll-up: every record is counted once, wherever it stands."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Invalid, NotFound
from foliot.domain.ids import PrincipalId, WorkspaceId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Backoff, Misfire, MisfireRule, Overlap, OverlapRule, Retry
from foliot.domain.run import RunError
from foliot.services.jobs.job_status import pause, purge
from foliot.services.runs.statistics import job_stats, roll_up, workspace_stats
from foliot.storage.runs import statistics
from foliot.storage.runs.statistics import Percentiles
from foliot.storage.tx import Database, Role
from foliot.testing.clock import NOON, ManualClock
from tests.services.builders import HOURLY, Owner, advance_and_tick, claim_runs, create_job, report_runs

HOUR, DAY, SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)
BROKEN = Failed(RunError("boom", "It broke."))
NO_RETRY = Retry(0, Backoff.NONE)


async def rolled(database: Database, limit: int = 5_000) -> int:
    counted, is_more = 0, True
    while is_more:
        step = await roll_up(database, limit)
        counted, is_more = counted + step.counted, step.is_more
    return counted


async def a_day(database: Database, clock: ManualClock) -> None:
    """24 planned times: of every four, two succeed after 2 s, one fails after 6 s, one is skipped behind it."""
    for hour in range(24):
        await advance_and_tick(database, clock, HOUR)
        match hour % 4:
            case 0 | 1:
                taken = await claim_runs(database)
                clock.advance(2 * SECOND)
                await report_runs(database, taken)
                clock.advance(-2 * SECOND)
            case 2:
                live = await claim_runs(database)
            case _:
                clock.advance(-HOUR + 6 * SECOND)
                await report_runs(database, live, BROKEN)
                clock.advance(HOUR - 6 * SECOND)


async def test_today_is_counted_from_the_ledger_itself(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    clock.set(NOON - 12 * HOUR)
    job_id = await create_job(database, workspace, HOURLY, retry=NO_RETRY)
    await advance_and_tick(database, clock, HOUR)
    taken = await claim_runs(database)
    clock.advance(3 * SECOND)
    await report_runs(database, taken)
    stats = await job_stats(database, Scope(workspace), job_id)
    assert (stats.totals.runs, stats.totals.successes, stats.totals.success_rate) == (1, 1, 100)
    assert (stats.totals.average_duration, stats.totals.average_lag) == (3 * SECOND, 0 * SECOND)
    assert (stats.last_run_at, stats.last_run_status) == (clock.now() - 3 * SECOND, RunStatus.SUCCEEDED)
    assert await rolled(database) == 0, "the day is not over"


async def test_rolling_up_changes_no_figure(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    clock.set(NOON - 12 * HOUR)
    job_id = await create_job(database, workspace, HOURLY, retry=NO_RETRY)
    for _ in range(3):
        await a_day(database, clock)
    clock.advance(HOUR / 2)
    before = await job_stats(database, Scope(workspace), job_id)
    of_all = await workspace_stats(database, Scope(workspace))
    assert (before.totals.runs, before.totals.successes, before.totals.failures) == (54, 36, 18)
    assert (before.totals.skips, before.totals.records) == (18, 72)
    assert before.totals.success_rate == 66
    assert of_all.totals == before.totals
    assert [day.day for day in before.days] == [date(2027, 1, 15) + n * DAY for n in range(4)]
    assert await rolled(database, limit=7) == 71  # the one of 00:00 today is left
    assert await rolled(database) == 0
    assert owner.execute("SELECT sum(records), count(*) FROM foliot.job_days").fetchone() == (71, 3)
    assert await job_stats(database, Scope(workspace), job_id) == before
    assert await workspace_stats(database, Scope(workspace)) == of_all
    only_today = await job_stats(database, Scope(workspace), job_id, days=1)
    assert only_today.totals.records == 1


async def test_a_run_open_at_the_roll_up_is_counted_once_when_it_ends(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    taken = await claim_runs(database)
    clock.advance(DAY)
    assert await rolled(database) == 1
    assert (await job_stats(database, Scope(workspace), job_id)).totals.records == 0
    assert await rolled(database) == 0
    await report_runs(database, taken)
    ended = await job_stats(database, Scope(workspace), job_id)
    assert (ended.totals.records, ended.totals.successes) == (1, 1)
    assert await rolled(database) == 1
    assert await job_stats(database, Scope(workspace), job_id) == ended
    assert await rolled(database) == 0
    assert owner.execute("SELECT day, records FROM foliot.job_days").fetchall() == [(date(2027, 1, 15), 1)]


async def test_a_gap_record_counts_its_planned_times_as_skips(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, misfire=Misfire(MisfireRule.SKIP))
    await advance_and_tick(database, clock, 10 * HOUR + HOUR / 2)
    totals = (await job_stats(database, Scope(workspace), job_id)).totals
    assert (totals.records, totals.skips, totals.runs, totals.success_rate) == (1, 10, 0, None)


async def test_percentiles_speak_of_the_newest_runs_that_were_attempted(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, overlap=Overlap(OverlapRule.CONCURRENT))
    assert (await job_stats(database, Scope(workspace), job_id)).newest.duration is None
    for seconds in range(1, 101):
        await advance_and_tick(database, clock, HOUR)
        clock.advance(SECOND)
        taken = await claim_runs(database)
        clock.advance(seconds * SECOND)
        await report_runs(database, taken)
        clock.advance(-(seconds + 1) * SECOND)
    newest = (await job_stats(database, Scope(workspace), job_id)).newest
    assert newest.runs == 100
    assert newest.duration == Percentiles(50 * SECOND, 95 * SECOND, 99 * SECOND)
    assert newest.lag == Percentiles(SECOND, SECOND, SECOND)


async def test_an_hour_is_rolled_up_only_when_no_transaction_of_it_can_be_left(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    clock.set(NOON - 12 * HOUR)
    await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    clock.set(NOON - 10 * HOUR + timedelta(minutes=9))
    assert await rolled(database) == 0
    clock.advance(timedelta(minutes=1))
    assert await rolled(database) == 1


async def test_two_nodes_do_not_roll_up_at_once(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    clock.advance(DAY)
    with owner.transaction():
        owner.execute("SELECT FROM foliot.scans WHERE name = 'roll_up' FOR UPDATE")
        assert await rolled(database) == 0
    assert await rolled(database) == 1


async def test_strangers_and_nonsense_are_refused(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    with pytest.raises(NotFound):
        await job_stats(database, Scope(WorkspaceId(uuid4())), job_id)
    for days in (0, -1, 10_000):
        with pytest.raises(Invalid, match="days"):
            await workspace_stats(database, Scope(workspace), days)


async def test_a_workspaces_days_outlast_a_purged_job(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    clock.set(NOON - 12 * HOUR)
    job_id = await create_job(database, workspace, HOURLY, retry=NO_RETRY)
    await a_day(database, clock)
    clock.advance(DAY)
    await rolled(database)
    before = (await workspace_stats(database, Scope(workspace))).days
    (counted,) = owner.execute(
        "SELECT day, records, runs, skips FROM foliot.workspace_days ORDER BY day LIMIT 1"
    ).fetchall()
    assert counted == (before[0].day, before[0].records, before[0].runs, before[0].skips)
    await purge(database, Scope(workspace, Actor("test")), job_id, force=True)
    assert (await workspace_stats(database, Scope(workspace))).days[0] == before[0]


async def test_figures_of_one_owner_are_of_its_own_jobs(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    own = await create_job(database, workspace, HOURLY)
    await create_job(database, workspace, HOURLY)
    another_owner = PrincipalId(uuid4())
    owner.execute("UPDATE foliot.jobs SET owner_id = %s WHERE id = %s", [another_owner, own])
    await advance_and_tick(database, clock, HOUR)
    await report_runs(database, await claim_runs(database))
    for _ in range(2):  # before it is rolled up, and after
        mine = await workspace_stats(database, Scope(workspace, visible_owner=another_owner))
        assert (mine.totals.runs, mine.newest.runs, sum(mine.jobs.values())) == (1, 1, 1)
        assert (await workspace_stats(database, Scope(workspace))).totals.runs == 2
        clock.advance(DAY)
        await rolled(database)


async def test_jobs_of_a_status_are_counted_up_to_a_bound(database: Database, workspace: WorkspaceId) -> None:
    made = [await create_job(database, workspace, HOURLY) for _ in range(4)]
    await pause(database, Scope(workspace, Actor("tests")), made[0])
    async with database.tx(Role.APP, workspace) as tx:
        exact = await statistics.count_jobs_by_status(tx)
        found = await statistics.count_jobs_up_to(tx, 100)
        assert {status: jobs for status, jobs in found.items() if jobs} == exact
        assert found.keys() == set(JobStatus)
        bounded = await statistics.count_jobs_up_to(tx, 2)
        assert (bounded[JobStatus.ACTIVE], bounded[JobStatus.PAUSED]) == (2, 1)
