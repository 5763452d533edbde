"""Reading the ledger: what a run was, what it is doing, and a job's history page by page."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid, NotFound
from foliot.domain.filters import read_query
from foliot.domain.filters.fields import RUNS
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.lifecycle import AttemptStatus, RunStatus
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Backoff, Overlap, OverlapRule, Retry
from foliot.domain.run import RunError, Trigger
from foliot.domain.schedule import Cron, SkipReason
from foliot.services.jobs import job_edits, jobs
from foliot.services.runs import history, run_control
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import ClaimOrder
from foliot.storage.runs import run_search
from foliot.storage.runs.run_search import RunFilter
from foliot.storage.tx import Database, Role
from foliot.testing.clock import NOON, ManualClock
from foliot.testing.fixtures import TEST
from tests.services.builders import (
    HOURLY,
    MINUTELY,
    WORKER,
    Owner,
    advance_and_tick,
    claim_runs,
    create_job,
    make_definition,
    report_runs,
)

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def found(text: str) -> RunFilter:
    return RunFilter(read_query(text, RUNS, NOON))


ONE_RETRY = Retry(max=1, strategy=Backoff.FIXED, base=MINUTE)


@pytest.mark.requirement("S1-E2", "S1-FR-006", "S1-US1.2", "S2-22")
async def test_a_run_tells_its_whole_story(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, Cron("0 9 * * *", "America/New_York"))
    await advance_and_tick(database, clock, 2 * HOUR)
    taken = await claim_runs(database)
    clock.advance(3 * SECOND)
    await report_runs(database, taken, output={"rows": 7})
    (run,) = (await history.of_job(database, Scope(workspace), job_id)).items
    alone = await history.run(database, Scope(workspace), run.id)
    assert (
        replace(alone, attempts=None, artifacts=None, called=None, usage=None),
        len(alone.attempts or ()),
    ) == (run, 1)
    assert (run.status, run.trigger, run.number) == (RunStatus.SUCCEEDED, Trigger.SCHEDULE, 1)
    assert (run.planned_for, run.planned_local) == (NOON + 2 * HOUR, datetime(2027, 1, 15, 9, 0))
    assert (run.started_at, run.finished_at) == (NOON + 2 * HOUR, NOON + 2 * HOUR + 3 * SECOND)
    assert (run.duration_ms, run.lag_ms, run.attempt_count) == (3000, 0, 1)
    assert (run.output, run.error, run.worker) == ({"rows": 7}, None, WORKER)


async def test_the_local_time_of_an_interval_is_the_clock_on_its_wall(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(
        database, workspace, type(MINUTELY)(HOUR, timezone="Asia/Kolkata"), overlap=Overlap(OverlapRule.SKIP)
    )
    await advance_and_tick(database, clock, HOUR)
    (run,) = (await history.of_job(database, Scope(workspace), job_id)).items
    assert run.planned_local == datetime(2027, 1, 15, 18, 30)


async def test_an_open_run_says_what_it_is_doing(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(
        database, workspace, HOURLY, overlap=Overlap(OverlapRule.QUEUE), retry=ONE_RETRY
    )

    async def statuses() -> list[RunStatus]:
        return [run.status for run in (await history.of_job(database, Scope(workspace), job_id)).items]

    await advance_and_tick(database, clock, HOUR)
    assert await statuses() == [RunStatus.READY]
    taken = await claim_runs(database)
    assert await statuses() == [RunStatus.RUNNING]
    await advance_and_tick(database, clock, HOUR)
    assert await statuses() == [RunStatus.WAITING, RunStatus.RUNNING]
    (running,) = (await history.of_job(database, Scope(workspace), job_id, found("status:running"))).items
    assert (running.attempt_count, running.worker, running.finished_at) == (1, WORKER, None)
    await report_runs(database, taken)
    assert await statuses() == [RunStatus.READY, RunStatus.SUCCEEDED]


async def test_attempts_are_reported_whether_there_was_one_or_more(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, retry=ONE_RETRY)
    await advance_and_tick(database, clock, HOUR)
    error = RunError("boom", "It broke.")
    await report_runs(database, await claim_runs(database), Failed(error))
    clock.advance(MINUTE)
    taken = await claim_runs(database)
    (run,) = (await history.of_job(database, Scope(workspace), job_id)).items
    assert run.error == error
    reported = await history.attempts_of(database, Scope(workspace), run.id)
    assert [(each.number, each.status) for each in reported] == [
        (1, AttemptStatus.FAILED),
        (2, AttemptStatus.RUNNING),
    ]
    assert reported[0].error == error
    assert reported[1].ended_at is None
    await report_runs(database, taken)
    reported = await history.attempts_of(database, Scope(workspace), run.id)
    assert [each.status for each in reported] == [AttemptStatus.FAILED, AttemptStatus.SUCCEEDED]
    assert [each.fence for each in reported] == [1, 2]
    await advance_and_tick(database, clock, HOUR)
    await report_runs(database, await claim_runs(database))
    newest = (await history.of_job(database, Scope(workspace), job_id)).items[0]
    (only,) = await history.attempts_of(database, Scope(workspace), newest.id)
    assert (only.number, only.status, only.worker) == (1, AttemptStatus.SUCCEEDED, WORKER)


async def test_pages_follow_each_other_without_loss_or_repetition(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, MINUTELY, overlap=Overlap(OverlapRule.CONCURRENT))
    for _ in range(11):
        await advance_and_tick(database, clock, MINUTE)
    everything = [run.id for run in (await history.of_job(database, Scope(workspace), job_id)).items]
    assert len(everything) == 11
    seen: list[RunId] = []
    cursor = None
    for expected in (4, 4, 3):
        page = await history.of_job(database, Scope(workspace), job_id, cursor=cursor, limit=4)
        assert len(page.items) == expected
        seen += [run.id for run in page.items]
        cursor = page.next_cursor
    assert cursor is None
    assert seen == everything
    recent = await history.of_workspace(database, Scope(workspace), limit=4)
    rest = await history.of_workspace(database, Scope(workspace), cursor=recent.next_cursor)
    assert [run.id for run in (*recent.items, *rest.items)] == everything


async def test_pages_lose_none_of_several_runs_of_one_planned_time(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, overlap=Overlap(OverlapRule.CONCURRENT))
    await advance_and_tick(database, clock, HOUR)
    await report_runs(database, await claim_runs(database))
    (first,) = (await history.of_job(database, Scope(workspace), job_id)).items
    repeats = [await run_control.retry_run(database, Scope(workspace, TEST), first.id) for _ in range(4)]
    await advance_and_tick(database, clock, HOUR)
    seen: list[RunId] = []
    cursor, planned = None, set()
    while not seen or cursor is not None:
        page = await history.of_job(database, Scope(workspace), job_id, cursor=cursor, limit=2)
        seen += [run.id for run in page.items]
        planned |= {run.planned_for for run in page.items}
        cursor = page.next_cursor
    assert len(planned) == 2
    assert (len(seen), set(seen) >= {first.id, *repeats}) == (6, True)


async def test_a_history_is_filtered_by_status_trigger_and_time(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    await advance_and_tick(database, clock, HOUR)  # the first is still live
    for wanted, expected in (
        (found("status:skipped"), [NOON + 2 * HOUR]),
        (found("status:ready"), [NOON + HOUR]),
        (found("trigger:manual"), []),
        (found("since:2027-01-15T14:00:00Z"), [NOON + 2 * HOUR]),
        (found("before:2027-01-15T14:00:00Z"), [NOON + HOUR]),
        (found("before:2027-01-15T14:00:01Z"), [NOON + 2 * HOUR, NOON + HOUR]),
        (found("since:2027-01-15T13:00:01Z"), [NOON + 2 * HOUR]),
    ):
        page = await history.of_job(database, Scope(workspace), job_id, wanted)
        assert [run.planned_for for run in page.items] == expected
        page = await history.of_workspace(database, Scope(workspace), wanted)
        assert [run.planned_for for run in page.items] == expected
    (skipped,) = (await history.of_job(database, Scope(workspace), job_id, found("status:skipped"))).items
    assert skipped.skip_reason is SkipReason.OVERLAP


async def test_a_filter_that_matches_nothing_looks_at_a_bounded_stretch_and_goes_on(
    database: Database, clock: ManualClock, workspace: WorkspaceId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_search, "MOST_SCANNED", 3)
    job_id = await create_job(database, workspace, MINUTELY, overlap=Overlap(OverlapRule.CONCURRENT))
    for _ in range(7):
        await advance_and_tick(database, clock, MINUTE)
    await report_runs(database, (await claim_runs(database))[:1])
    wanted = found("status:succeeded")
    for is_of_job in (True, False):
        count, pages, cursor = 0, 0, None
        while pages == 0 or cursor is not None:
            if is_of_job:
                page = await history.of_job(database, Scope(workspace), job_id, wanted, cursor=cursor)
            else:
                page = await history.of_workspace(database, Scope(workspace), wanted, cursor=cursor)
            count, pages, cursor = count + len(page.items), pages + 1, page.next_cursor
        assert (count, pages) == (1, 3)


async def test_another_workspaces_runs_do_not_exist(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await advance_and_tick(database, clock, HOUR)
    (run,) = (await history.of_job(database, Scope(workspace), job_id)).items
    outsider = WorkspaceId(uuid4())
    for ask in (
        history.run(database, Scope(outsider), run.id),
        history.attempts_of(database, Scope(outsider), run.id),
        history.of_job(database, Scope(outsider), job_id),
        history.run(database, Scope(workspace), RunId(uuid4())),
        history.of_job(database, Scope(workspace), JobId(uuid4())),
    ):
        with pytest.raises(NotFound):
            await ask
    assert (await history.of_workspace(database, Scope(outsider))).items == ()


async def test_an_agent_sees_the_runs_of_its_own_jobs(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    mine, theirs = [await create_job(database, workspace, HOURLY) for _ in range(2)]
    agent, other = PrincipalId(uuid4()), PrincipalId(uuid4())
    for job_id, holder in ((mine, agent), (theirs, other)):
        owner.execute("UPDATE foliot.jobs SET owner_id = %s WHERE id = %s", [holder, job_id])
    await advance_and_tick(database, clock, HOUR)
    for wanted in (RunFilter(), found("status:ready")):
        page = await history.of_workspace(database, Scope(workspace, visible_owner=agent), wanted)
        assert [run.job_id for run in page.items] == [mine]
    with pytest.raises(NotFound):
        await history.of_job(database, Scope(workspace, visible_owner=agent), theirs)


@pytest.mark.parametrize("cursor", ["", "x", "é", "AAAA", "f" * 32, "A" * 4000, "\x00"])
async def test_a_cursor_of_somebody_elses_making_is_refused(
    database: Database, workspace: WorkspaceId, cursor: str
) -> None:
    with pytest.raises(Invalid, match="cursor"):
        await history.of_workspace(database, Scope(workspace), cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 201])
async def test_a_page_has_a_bounded_length(database: Database, workspace: WorkspaceId, limit: int) -> None:
    with pytest.raises(Invalid, match="1 to 200"):
        await history.of_workspace(database, Scope(workspace), limit=limit)


def test_the_view_gives_no_more_rights_than_its_reader_has(owner: Owner) -> None:
    found = owner.execute(
        "SELECT reloptions FROM pg_class WHERE oid = 'foliot.run_records'::regclass"
    ).fetchone()
    assert found == (["security_invoker=true"],)


@pytest.mark.requirement("S0-5", "S1-FR-006")
async def test_a_run_shows_the_payload_it_worked_on_with_what_it_was_given(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    job_id = await create_job(database, workspace, HOURLY, payload={"full": True, "n": 1})
    await advance_and_tick(database, clock, timedelta(hours=1))
    await report_runs(database, await claim_runs(database))
    clock.advance(timedelta(minutes=1))
    edited = make_definition(HOURLY, payload={"full": False})
    await job_edits.edit(database, Scope(workspace, TEST), job_id, edited)
    await run_control.run_now(database, Scope(workspace, TEST), job_id, input={"n": 7})
    page = await history.of_job(database, Scope(workspace), job_id)
    assert [each.input for each in page.items] == [{"full": False, "n": 7}, {"full": True, "n": 1}]
    assert (await history.run(database, Scope(workspace), page.items[1].id)).input == {"full": True, "n": 1}


async def test_a_run_s_own_input_lies_over_the_payload_of_each_attempt_s_revision(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    scope = Scope(workspace, TEST)
    job_id = await create_job(database, workspace, HOURLY, retry=ONE_RETRY, payload={"n": 1, "old": True})
    run_id = await run_control.run_now(database, scope, job_id, input={"by": "me"})
    await report_runs(database, await claim_runs(database), Failed(RunError("boom", "It broke.")))
    clock.advance(MINUTE)
    await job_edits.edit(database, scope, job_id, make_definition(HOURLY, retry=ONE_RETRY, payload={"n": 2}))
    await report_runs(database, await claim_runs(database))
    shown = await history.run(database, scope, run_id)
    assert [each.input for each in shown.attempts or ()] == [
        {"n": 1, "old": True, "by": "me"},
        {"n": 2, "by": "me"},
    ]
    again = await run_control.retry_run(database, scope, run_id, input={"by": "you"})
    assert (await history.run(database, scope, again)).input == {"n": 2, "by": "you"}


@pytest.mark.requirement("S1-FR-006", "S3-4")
async def test_each_attempt_keeps_the_revision_and_the_input_that_it_ran(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    scope = Scope(workspace, TEST)
    job_id = await create_job(database, workspace, HOURLY, retry=ONE_RETRY, payload={"n": 1})
    run_id = await run_control.run_now(database, scope, job_id)
    await report_runs(database, await claim_runs(database), Failed(RunError("boom", "It broke.")))
    edited = make_definition(HOURLY, retry=ONE_RETRY, payload={"n": 2})
    await job_edits.edit(database, scope, job_id, edited)  # at the instant of the first attempt
    shown = await history.run(database, scope, run_id)
    assert [(each.revision, each.input) for each in shown.attempts or ()] == [(1, {"n": 1})]
    assert shown.input == {"n": 2}  # what the next attempt will get
    clock.advance(MINUTE)
    taken = await claim_runs(database)
    later = make_definition(HOURLY, retry=ONE_RETRY, payload={"n": 3})
    await job_edits.edit(database, scope, job_id, later)
    await report_runs(database, taken)
    shown = await history.run(database, scope, run_id)
    assert (shown.revision, shown.input) == (2, {"n": 2})
    assert [(each.revision, each.input) for each in shown.attempts or ()] == [
        (1, {"n": 1}),
        (2, {"n": 2}),
    ]
    assert await history.attempts_of(database, scope, run_id) == shown.attempts
    job = await jobs.get(database, workspace, job_id)
    assert (job.failed_attempt_count, job.failure_count, job.success_count) == (1, 0, 1)


async def test_a_job_edited_while_it_is_claimed_leaves_the_revision_that_the_worker_got(
    database: Database, workspace: WorkspaceId, owner: Owner
) -> None:
    job_id = await create_job(database, workspace, HOURLY)
    await run_control.run_now(database, Scope(workspace, TEST), job_id)
    async with database.tx(Role.ENGINE) as tx:
        claimed = await run_queue.claim(tx, ClaimOrder(WORKER, "default", ["http"], 1), [workspace])
        owner.execute("UPDATE foliot.jobs SET revision = 2")  # an edit that ended between the two statements
        await run_queue.load_claimed(tx, claimed)
    assert [each.revision for each in claimed] == [1]
    assert owner.execute("SELECT revision FROM foliot.leases").fetchall() == [(2,)]
