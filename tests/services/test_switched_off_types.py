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
from tests.services.staging import BROKE, MANUAL, Stage

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def turn(stage: Stage, *, on: bool, kind: str = "python", reason: str = "moving house") -> None:
    await set_type_enabled(stage.database, Scope(stage.workspace, TEST), kind, enabled=on, reason=reason)


async def why(stage: Stage, job_id: JobId) -> RunExplanation:
    return await explain_instant(stage.database, Scope(stage.workspace), job_id)


async def test_what_is_ready_is_held_and_goes_on_when_the_type_is_on_again(stage: Stage) -> None:
    job = await stage.job("hourly", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.ready() == [job]
    await turn(stage, on=False)
    told = (await why(stage, job)).told
    assert (told.verdict, told.place is not None and told.place.waits_for) == (Verdict.WAITING, "type")
    assert "switched off" in told.sentence
    assert "moving house" in told.sentence
    assert await stage.claim() == []
    assert (stage.ready(), stage.waits()) == ([], [(job, "type")])
    assert (await why(stage, job)).told.sentence == told.sentence
    assert await stage.claim() == []
    await turn(stage, on=True)
    assert (stage.ready(), stage.waits()) == ([job], [])
    assert await stage.run_once() == [job]
    assert stage.runs(job, "status") == [("succeeded",)]


async def test_a_retry_of_a_type_that_is_off_waits_and_keeps_its_count(stage: Stage) -> None:
    retry = Retry(max=2, strategy=Backoff.FIXED, base=MINUTE)
    job = await stage.job("flaky", MANUAL, retry=retry)
    await run_now(stage.database, Scope(stage.workspace, TEST), job)
    [first] = await stage.claim()
    await turn(stage, on=False)
    await stage.report(first, BROKE)  # what is under way ends as it would
    stage.clock.advance(MINUTE)
    assert await stage.claim() == []
    assert stage.waits() == [(job, "type")]
    await turn(stage, on=True)
    [second] = await stage.claim()
    assert (second.run_id, second.attempt) == (first.run_id, 2)


async def test_what_a_dependency_would_trigger_is_recorded_as_skipped(stage: Stage) -> None:
    first = await stage.job("first", MANUAL)
    then = await stage.job("then", MANUAL, [Edge(first)])
    run = await stage.by_hand(first)
    [claimed] = await stage.claim()
    await turn(stage, on=False)
    assert claimed.run_id == run
    await stage.report(claimed)
    assert stage.runs(then, "status, skip_reason") == [("skipped", "type_disabled")]
    assert "switched off" in (await why(stage, then)).told.sentence
    await turn(stage, on=True)
    assert stage.ready() == []  # what was skipped is not made up for
    await stage.end(first)
    assert stage.ready() == [then]


async def test_what_people_ask_for_is_refused(stage: Stage) -> None:
    job = await stage.job("hourly", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    [claimed] = await stage.claim()
    await stage.report(claimed)
    await turn(stage, on=False)
    now = stage.clock.now()
    with pytest.raises(Conflict, match="switched off"):
        await run_now(stage.database, Scope(stage.workspace, TEST), job, override=True)
    with pytest.raises(Conflict, match="switched off"):
        await retry_run(stage.database, Scope(stage.workspace, TEST), claimed.run_id)
    with pytest.raises(Conflict, match="switched off"):
        await backfill(
            stage.database,
            Scope(stage.workspace, TEST),
            job,
            now - 3 * HOUR,
            now,
            dry_run=False,
            skipped=True,
        )


async def test_explain_names_it_for_times_to_come_and_for_jobs_without_a_schedule(stage: Stage) -> None:
    hourly, by_hand = await stage.job("hourly", Interval(HOUR)), await stage.job("by hand", MANUAL)
    await turn(stage, on=False, reason="")
    told = (await why(stage, hourly)).told
    assert told.verdict is Verdict.WILL_NOT_RUN
    assert "its job type is switched off" in told.sentence
    assert told.next_step is not None
    assert any("switched off" in fact for fact in (await why(stage, by_hand)).told.facts)
    await turn(stage, on=True)
    assert (await why(stage, hourly)).told.verdict is Verdict.WILL_RUN


async def test_only_jobs_of_that_type_in_that_workspace_leave_the_fast_path(stage: Stage) -> None:
    mine = await stage.job("mine", Interval(HOUR))
    await turn(stage, on=False, kind="http")
    stage.clock.advance(HOUR)
    async with stage.database.tx(Role.ENGINE) as tx:
        taken = await fires.take_due(tx, 10, ZONE_DATA_VERSION)
        off = await job_types.disabled_in(tx, fires.workspace_ids_of(taken))
        fast, others = split_due(taken, tx.now, off=off)
        assert (len(off), len(fast), others) == (1, 1, [])
        fast, others = split_due(taken, tx.now, off=frozenset({(stage.workspace, "python")}))
        assert (fast, fires.job_ids_of(others)) == ([], [mine])


async def test_caps_hold_beside_it_and_other_types_pass(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 1)
    await turn(stage, on=False, kind="http")
    jobs = [await stage.job(f"{n}", Interval(HOUR)) for n in range(2)]
    stage.clock.advance(HOUR)
    await stage.tick()
    assert [each.job_id for each in await stage.claim()] == jobs[:1]
    assert stage.waits() == [(jobs[1], "limit")]


async def test_what_a_claim_held_while_the_type_was_switched_on_is_let_go_by_the_sweeper(
    stage: Stage,
) -> None:
    job = await stage.job("hourly", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    await turn(stage, on=False)
    assert await stage.claim() == []
    stage.owner.execute("DELETE FROM foliot.disabled_types")  # as a claim would see it that began before
    assert (await advance_waiting_runs(stage.database)).released == 1
    assert stage.ready() == [job]
    assert (await advance_waiting_runs(stage.database)).released == 0


async def test_a_held_run_that_comes_too_late_is_skipped_by_its_deadline(stage: Stage) -> None:
    job = await stage.job("hourly", Interval(HOUR), limits=Limits(start_deadline=10 * MINUTE))
    stage.clock.advance(HOUR)
    await stage.tick()
    await turn(stage, on=False)
    assert await stage.claim() == []
    stage.clock.advance(11 * MINUTE)
    assert (await advance_waiting_runs(stage.database)).ended == 1
    assert stage.runs(job, "status, skip_reason") == [("skipped", "deadline")]
