"""A type that a workspace has switched off: nothing of it starts, all of it is recorded, and what was there goes on when it is on again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge
from foliot.domain.errors import Conflict
from foliot.domain.explain.records import Verdict
from foliot.domain.ids import JobId
from foliot.domain.policy import Backoff, Limits, Retry
from foliot.domain.schedule import ZONE_DATA_VERSION, Interval
from foliot.services.jobs.job_types import set_type_enabled
from foliot.services.runs.backfill import backfill
from foliot.services.runs.explain import RunExplanation, explain_instant
from foliot.services.runs.run_control import retry_run, run_now
from foliot.services.scheduling.fast_path import split_due
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers.limits import set_limit
from foliot.storage.jobs import job_types
from foliot.storage.timers import fires
from foliot.storage.tx import Role
from foliot.testing.fixtures import TEST
from tests.services.builders import insert_worker
from tests.services.workspace_harness import BROKE, MANUAL, WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def turn(
    harness: WorkspaceHarness, *, on: bool, kind: str = "python", reason: str = "moving house"
) -> None:
    await set_type_enabled(harness.database, Scope(harness.workspace, TEST), kind, enabled=on, reason=reason)


async def why(harness: WorkspaceHarness, job_id: JobId) -> RunExplanation:
    return await explain_instant(harness.database, Scope(harness.workspace), job_id)


async def test_what_is_ready_is_held_and_goes_on_when_the_type_is_on_again(harness: WorkspaceHarness) -> None:
    job = await harness.job("hourly", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.ready() == [job]
    await turn(harness, on=False)
    reported = (await why(harness, job)).explanation
    assert (reported.verdict, reported.place is not None and reported.place.waits_for) == (
        Verdict.WAITING,
        "type",
    )
    assert "switched off" in reported.sentence
    assert "moving house" in reported.sentence
    assert await harness.claim() == []
    assert (harness.ready(), harness.waits()) == ([], [(job, "type")])
    assert (await why(harness, job)).explanation.sentence == reported.sentence
    assert await harness.claim() == []
    await turn(harness, on=True)
    assert (harness.ready(), harness.waits()) == ([job], [])
    assert await harness.run_once() == [job]
    assert harness.runs(job, "status") == [("succeeded",)]


async def test_a_retry_of_a_type_that_is_off_waits_and_keeps_its_count(harness: WorkspaceHarness) -> None:
    retry = Retry(max=2, strategy=Backoff.FIXED, base=MINUTE)
    job = await harness.job("flaky", MANUAL, retry=retry)
    await run_now(harness.database, Scope(harness.workspace, TEST), job)
    [first] = await harness.claim()
    await turn(harness, on=False)
    await harness.report(first, BROKE)  # what is under way ends as it would
    harness.clock.advance(MINUTE)
    assert await harness.claim() == []
    assert harness.waits() == [(job, "type")]
    await turn(harness, on=True)
    [second] = await harness.claim()
    assert (second.run_id, second.attempt) == (first.run_id, 2)


async def test_what_a_dependency_would_trigger_is_recorded_as_skipped(harness: WorkspaceHarness) -> None:
    first = await harness.job("first", MANUAL)
    then = await harness.job("then", MANUAL, [Edge(first)])
    run = await harness.run_manually(first)
    [claimed] = await harness.claim()
    await turn(harness, on=False)
    assert claimed.run_id == run
    await harness.report(claimed)
    assert harness.runs(then, "status, skip_reason") == [("skipped", "type_disabled")]
    assert "switched off" in (await why(harness, then)).explanation.sentence
    await turn(harness, on=True)
    assert harness.ready() == []  # what was skipped is not made up for
    await harness.end(first)
    assert harness.ready() == [then]


async def test_what_people_ask_for_is_refused(harness: WorkspaceHarness) -> None:
    job = await harness.job("hourly", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    [claimed] = await harness.claim()
    await harness.report(claimed)
    await turn(harness, on=False)
    now = harness.clock.now()
    with pytest.raises(Conflict, match="switched off"):
        await run_now(harness.database, Scope(harness.workspace, TEST), job, override=True)
    with pytest.raises(Conflict, match="switched off"):
        await retry_run(harness.database, Scope(harness.workspace, TEST), claimed.run_id)
    with pytest.raises(Conflict, match="switched off"):
        await backfill(
            harness.database,
            Scope(harness.workspace, TEST),
            job,
            now - 3 * HOUR,
            now,
            dry_run=False,
            skipped=True,
        )


async def test_explain_names_it_for_times_to_come_and_for_jobs_without_a_schedule(
    harness: WorkspaceHarness,
) -> None:
    hourly, run_manually = await harness.job("hourly", Interval(HOUR)), await harness.job("by hand", MANUAL)
    await turn(harness, on=False, reason="")
    reported = (await why(harness, hourly)).explanation
    assert reported.verdict is Verdict.WILL_NOT_RUN
    assert "its job type is switched off" in reported.sentence
    assert reported.next_step is not None
    assert any("switched off" in fact for fact in (await why(harness, run_manually)).explanation.facts)
    await turn(harness, on=True)
    insert_worker(harness.owner, harness.clock, "one", ["default"], ["python"])  # else the run would wait
    assert (await why(harness, hourly)).explanation.verdict is Verdict.WILL_RUN


async def test_only_jobs_of_that_type_in_that_workspace_leave_the_fast_path(
    harness: WorkspaceHarness,
) -> None:
    mine = await harness.job("mine", Interval(HOUR))
    await turn(harness, on=False, kind="http")
    harness.clock.advance(HOUR)
    async with harness.database.tx(Role.ENGINE) as tx:
        taken = await fires.take_due(tx, 10, ZONE_DATA_VERSION)
        off = await job_types.disabled_in(tx, fires.workspace_ids_of(taken))
        fast, others = split_due(taken, tx.now, off=off)
        assert (len(off), len(fast), others) == (1, 1, [])
        fast, others = split_due(taken, tx.now, off=frozenset({(harness.workspace, "python")}))
        assert (fast, fires.job_ids_of(others)) == ([], [mine])


async def test_caps_hold_beside_it_and_other_types_pass(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    await turn(harness, on=False, kind="http")
    jobs = [await harness.job(f"{n}", Interval(HOUR)) for n in range(2)]
    harness.clock.advance(HOUR)
    await harness.tick()
    assert [each.job_id for each in await harness.claim()] == jobs[:1]
    assert harness.waits() == [(jobs[1], "limit")]


async def test_what_a_claim_held_while_the_type_was_switched_on_is_let_go_by_the_sweeper(
    harness: WorkspaceHarness,
) -> None:
    job = await harness.job("hourly", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    await turn(harness, on=False)
    assert await harness.claim() == []
    harness.owner.execute("DELETE FROM foliot.disabled_types")  # as a claim would see it that began before
    assert (await advance_waiting_runs(harness.database)).released == 1
    assert harness.ready() == [job]
    assert (await advance_waiting_runs(harness.database)).released == 0


async def test_a_held_run_that_comes_too_late_is_skipped_by_its_deadline(harness: WorkspaceHarness) -> None:
    job = await harness.job("hourly", Interval(HOUR), limits=Limits(start_deadline=10 * MINUTE))
    harness.clock.advance(HOUR)
    await harness.tick()
    await turn(harness, on=False)
    assert await harness.claim() == []
    harness.clock.advance(11 * MINUTE)
    assert (await advance_waiting_runs(harness.database)).ended == 1
    assert harness.runs(job, "status, skip_reason") == [("skipped", "deadline")]
