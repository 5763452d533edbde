"""Why: of any instant of a job, and of one run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge
from foliot.domain.errors import Invalid, NotFound
from foliot.domain.explain.records import Explanation, Verdict
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Backoff, Misfire, MisfireRule, Overlap, OverlapRule, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval, IntervalMode, Once
from foliot.services.runs import explain, history
from foliot.services.workers import workers
from foliot.storage.tx import Database
from foliot.testing.clock import NOON, ManualClock
from tests.services.builders import (
    HOURLY,
    MANUAL,
    Owner,
    advance_and_tick,
    claim_runs,
    create_job,
    insert_worker,
    report_runs,
)

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ONE_RETRY = Retry(max=1, strategy=Backoff.FIXED, base=MINUTE)


async def explain_instant(database: Database, workspace: WorkspaceId, *asked: Any) -> Explanation:
    return (await explain.explain_instant(database, Scope(workspace), *asked)).explanation


async def explain_run(database: Database, workspace: WorkspaceId, *asked: Any) -> Explanation:
    return (await explain.explain_run(database, Scope(workspace), *asked)).explanation


async def newest(database: Database, workspace: WorkspaceId, job_id: JobId) -> RunId:
    return (await history.of_job(database, Scope(workspace), job_id)).items[0].id


@pytest.mark.requirement("S2-39")
async def test_what_ran_and_what_was_skipped_is_answered_from_the_record(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    taken = await claim_runs(database)
    await advance_and_tick(database, clock, HOUR)
    await report_runs(database, taken)
    ran = await explain_instant(database, workspace, job_id, NOON + HOUR)
    assert (ran.verdict, ran.next_step) == (Verdict.RAN, None)
    assert ran.sentence.startswith("Run 1, planned for 2027-01-15 13:00:00 UTC, succeeded")
    skipped = await explain_instant(database, workspace, job_id, NOON + 2 * HOUR)
    assert skipped.verdict is Verdict.SKIPPED
    assert (
        "run 1 of this job, which had started at 2027-01-15 13:00:00 UTC, was still live" in skipped.sentence
    )
    assert skipped.next_step is not None
    assert await explain_run(database, workspace, await newest(database, workspace, job_id)) == skipped


async def test_an_instant_between_planned_times_names_the_nearest(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    reported = await explain_instant(database, workspace, job_id, NOON + HOUR + 7 * MINUTE)
    assert reported.verdict is Verdict.NOT_PLANNED
    assert reported.facts == (
        "The nearest before is 2027-01-15 13:00:00 UTC.",
        "The nearest after is 2027-01-15 14:00:00 UTC.",
    )


async def test_a_time_within_a_gap_is_not_taken_for_the_run_behind_it(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    beat = timedelta(seconds=2)
    job_id = await create_job(database, workspace, Interval(beat))
    await advance_and_tick(database, clock, timedelta(seconds=80))  # of the late ones, the newest runs
    late = await explain_instant(database, workspace, job_id, NOON + timedelta(seconds=18))
    assert late.verdict is Verdict.WAITING
    missed = await explain_instant(database, workspace, job_id, NOON + timedelta(seconds=10))
    assert missed.verdict is Verdict.SKIPPED


async def test_a_time_within_a_gap_is_answered_from_the_gap_record(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, misfire=Misfire(MisfireRule.SKIP))
    await advance_and_tick(database, clock, 10 * HOUR + 30 * MINUTE)
    first = await explain_instant(database, workspace, job_id, NOON + HOUR)
    middle = await explain_instant(database, workspace, job_id, NOON + 5 * HOUR)
    assert middle == first
    assert middle.verdict is Verdict.SKIPPED
    assert middle.sentence.startswith("10 planned times from 2027-01-15 13:00:00 UTC")
    between = await explain_instant(database, workspace, job_id, NOON + 5 * HOUR + 10 * MINUTE)
    assert between.verdict is Verdict.NOT_PLANNED


async def test_before_creation_it_says_so(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    reported = await explain_instant(database, workspace, job_id, NOON - HOUR)
    assert reported.verdict is Verdict.NOT_CREATED
    assert "created on 2027-01-15 12:00:00 UTC" in reported.sentence


async def test_without_an_instant_a_one_shot_of_a_moment_gone_is_answered_from_its_record(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, Once(NOON - timedelta(seconds=5)))
    await advance_and_tick(database, clock, timedelta(seconds=1))
    await report_runs(database, await claim_runs(database))
    reported = await explain_instant(database, workspace, job_id)
    assert reported.verdict is Verdict.RAN


async def test_the_future_is_answered_from_the_same_timetable(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, tags=("billing",))
    unserved = await explain_instant(database, workspace, job_id, NOON + 3 * HOUR)
    assert unserved.verdict is Verdict.WILL_WAIT
    assert "no worker serves queue default for type http now" in unserved.sentence
    owner.execute("UPDATE foliot.workers SET queues = '{default}', types = '{http}'")
    assert (await explain_instant(database, workspace, job_id, NOON + 3 * HOUR)).verdict is Verdict.WILL_RUN
    owner.execute(
        "INSERT INTO foliot.freezes (workspace_id, id, scope, start_at, end_at, after, reason, created_by, created_at)"
        " VALUES (%s, %s, %s, %s, %s, 'skip', 'year end', 'test', %s)",
        [workspace, uuid4(), '{"tags": ["billing"]}', NOON + 2 * HOUR, NOON + 4 * HOUR, NOON],
    )
    frozen = await explain_instant(database, workspace, job_id, NOON + 3 * HOUR)
    assert frozen.verdict is Verdict.WILL_NOT_RUN
    assert "year end" in frozen.sentence
    assert (await explain_instant(database, workspace, job_id, NOON + 4 * HOUR)).verdict is Verdict.WILL_RUN
    owner.execute("UPDATE foliot.jobs SET status = 'paused'")
    paused = await explain_instant(database, workspace, job_id, NOON + 5 * HOUR)
    assert (paused.verdict, paused.next_step) == (Verdict.WILL_NOT_RUN, "Resume it.")


async def test_jobs_without_times_of_their_own_name_what_they_wait_for(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    chained = await create_job(
        database, workspace, Interval(HOUR, mode=IntervalMode.FIXED_DELAY), name="crawl"
    )
    after = await create_job(database, workspace, MANUAL, name="report", depends_on=(Edge(chained),))
    await advance_and_tick(database, clock, HOUR)
    reported = await explain_instant(database, workspace, chained, NOON + 9 * HOUR)
    assert reported.verdict is Verdict.NOT_PLANNED
    assert "waits for run 1 to end" in reported.sentence
    reported = await explain_instant(database, workspace, after, NOON + 9 * HOUR)
    assert "waits for the end of the job crawl" in reported.sentence


async def test_a_run_behind_another_says_which_and_where_it_stands(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, overlap=Overlap(OverlapRule.QUEUE))
    for _ in range(3):
        await advance_and_tick(database, clock, HOUR)
    last = await explain_run(database, workspace, await newest(database, workspace, job_id))
    assert last.verdict is Verdict.WAITING
    assert "an earlier run of its job to end (run 1)" in last.sentence
    assert "number 2 of 2 in line" in last.sentence
    assert await explain_instant(database, workspace, job_id, NOON + 3 * HOUR) == last


async def test_a_run_that_nobody_serves_says_so_and_names_the_living(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    owner.execute("DELETE FROM foliot.workers")
    job_id = await create_job(database, workspace, HOURLY, queue="mail")
    await advance_and_tick(database, clock, HOUR)
    run_id = await newest(database, workspace, job_id)
    reported = await explain_run(database, workspace, run_id)
    assert reported.sentence == "Run 1 is ready, but no worker serves queue mail for type http."
    assert reported.facts == ("No worker is alive.",)
    insert_worker(owner, clock, "alpha", ["default"], ["http", "python"])
    reported = await explain_run(database, workspace, run_id)
    assert reported.facts == ("Workers alive: alpha (queues: default; types: http, python).",)
    insert_worker(owner, clock, "beta", ["mail"], ["http"])
    reported = await explain_run(database, workspace, run_id)
    assert reported.sentence == "Run 1 is ready and waits for a worker; it is number 1 of 1 in line."


async def test_workers_that_have_no_room_are_the_reason(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    run_id = await newest(database, workspace, job_id)
    worker_id = await workers.register(database, "alpha", ["default"], ["http"], 2)
    theirs = [(RunId(uuid4()), 1), (RunId(uuid4()), 1)]  # of whatever workspace
    await workers.beat(database, worker_id, working_on=theirs)
    reported = await explain_run(database, workspace, run_id)
    assert reported.sentence == (
        "Run 1 is ready, but all 2 places of the workers that serve it are taken; it is number 1 of 1 in line."
    )
    assert "start another" in (reported.next_step or "")
    await workers.beat(database, worker_id, working_on=theirs[:1])
    reported = await explain_run(database, workspace, run_id)
    assert "waits for a worker" in reported.sentence


async def test_a_place_in_line_counts_only_ones_own_workspace_and_queue(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    insert_worker(owner, clock, "alpha", ["default"], ["http"])
    other = WorkspaceId(uuid4())
    owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', %s)",
        [other, NOON],
    )
    await create_job(database, other, HOURLY)
    await create_job(database, workspace, HOURLY, queue="mail")
    behind = await create_job(database, workspace, HOURLY, priority=5)
    await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    reported = await explain_run(database, workspace, await newest(database, workspace, behind))
    assert "number 2 of 2 in line" in reported.sentence


async def test_a_run_between_attempts_says_when_the_next_one_is(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retry=ONE_RETRY)
    await advance_and_tick(database, clock, HOUR)
    taken = await claim_runs(database)
    run_id = taken[0].run_id
    running = await explain_run(database, workspace, run_id)
    assert (running.verdict, "attempt 1" in running.sentence) == (Verdict.RUNNING, True)
    await report_runs(database, taken, Failed(RunError("boom", "It broke.")))
    reported = await explain_run(database, workspace, run_id)
    assert reported.sentence == "Run 1 waits for attempt 2 at 2027-01-15 13:01:00 UTC."
    assert reported.facts == ("boom: It broke.",)
    assert await newest(database, workspace, job_id) == run_id


@pytest.mark.parametrize(
    ("waits_for", "said"),
    [
        (
            "freeze",
            "waits for a freeze to end (year end; made by test), at the latest until 2027-01-15 16:00:00 UTC",
        ),
        ("limit", "waits for a free place under a limit (the workspace: 3 of 3 in use)"),
        ("window", "waits for its window or calendar to open"),
    ],
)
async def test_what_holds_a_run_is_named(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId, waits_for: str, said: str
) -> None:
    job_id = await create_job(database, workspace, HOURLY, overlap=Overlap(OverlapRule.QUEUE))
    await advance_and_tick(database, clock, HOUR)
    await advance_and_tick(database, clock, HOUR)
    owner.execute("UPDATE foliot.waiting SET waits_for = %s", [waits_for])
    owner.execute(
        "INSERT INTO foliot.freezes (workspace_id, id, scope, start_at, end_at, after, reason, created_by, created_at)"
        " VALUES (%s, %s, '{}', %s, %s, 'latest', 'year end', 'test', %s)",
        [workspace, uuid4(), NOON, NOON + 4 * HOUR, NOON],
    )
    owner.execute(
        "INSERT INTO foliot.limits (workspace_id, key, cap, in_use) VALUES (%s, '', 3, 3)", [workspace]
    )
    reported = await explain_run(database, workspace, await newest(database, workspace, job_id))
    assert said in reported.sentence


async def test_a_record_of_an_earlier_schedule_says_which(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    owner.execute("UPDATE foliot.jobs SET schedule_rev = 2, updated_at = %s", [NOON + 2 * HOUR])
    reported = await explain_instant(database, workspace, job_id, NOON + HOUR)
    assert reported.facts[-1] == "It was planned by schedule revision 1; the job is at revision 2 now."


async def test_strangers_and_nonsense_are_refused(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    with pytest.raises(NotFound):
        await explain_instant(database, WorkspaceId(uuid4()), job_id, NOON)
    with pytest.raises(NotFound):
        await explain_run(database, workspace, RunId(uuid4()))
    with pytest.raises(Invalid, match="offset"):
        await explain_instant(database, workspace, job_id, datetime(2027, 1, 1))
