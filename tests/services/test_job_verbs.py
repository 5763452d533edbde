"""Stopping, starting and editing jobs: what each verb leaves in the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import time, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition
from foliot.domain.dependencies import Edge
from foliot.domain.errors import Conflict, IllegalMove, Invalid, NotFound, QuotaExceeded, StaleRevision
from foliot.domain.filters import read_query
from foliot.domain.filters.fields import JOBS
from foliot.domain.ids import CalendarId, JobId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Breaker, Limits, Misfire, MisfireRule
from foliot.domain.quotas import Quotas
from foliot.domain.run import RunError, Trigger
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    Interval,
    IntervalMode,
    Manual,
    Once,
    Weekly,
    Window,
)
from foliot.services.identity import quota_steps
from foliot.services.jobs import calendars, job_edits, job_search, job_status, job_status_steps, jobs
from foliot.services.jobs.job_search import StoredJob
from foliot.services.runs import history, run_control
from foliot.testing.fixtures import ANA, BEN, EVE
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
BOOM = Failed(RunError("boom", "It broke."))


async def edit(
    driver: ServiceDriver, job_id: JobId, wanted: Definition, expected: int | None = None
) -> StoredJob:
    scope = Scope(driver.workspace, BEN, expected_revision=expected)
    return (await job_edits.edit(driver.database, scope, job_id, wanted)).job


async def pause(driver: ServiceDriver, job_id: JobId, **options: Any) -> job_status.StatusMove:
    return await job_status.pause(driver.database, Scope(driver.workspace, BEN), job_id, **options)


async def resume(driver: ServiceDriver, job_id: JobId, *, catch_up: bool = False) -> job_status.StatusMove:
    return await job_status.resume(driver.database, Scope(driver.workspace, BEN), job_id, catch_up=catch_up)


async def archive(driver: ServiceDriver, job_id: JobId, *, detach: bool = False) -> job_status.StatusMove:
    return await job_status.archive(driver.database, Scope(driver.workspace, BEN), job_id, detach=detach)


async def purge(driver: ServiceDriver, job_id: JobId, *, force: bool = False, detach: bool = False) -> int:
    return await job_status.purge(
        driver.database, Scope(driver.workspace, BEN), job_id, force=force, detach=detach
    )


# Creating


async def test_a_one_shot_whose_moment_has_passed_is_refused(driver: ServiceDriver) -> None:
    with pytest.raises(Invalid, match="passed"):
        await driver.job(Once(driver.clock.now() - HOUR))


async def test_a_one_shot_of_this_moment_runs_at_once(driver: ServiceDriver) -> None:
    await driver.job(Once(driver.clock.now() - timedelta(seconds=5)))
    assert await driver.tick() == 1
    assert driver.runs() == [("schedule", "ready", None)]


async def test_a_job_whose_end_has_passed_is_expired_from_the_start(driver: ServiceDriver) -> None:
    await driver.job(Cron("* * * * *"), end_at=driver.clock.now() - HOUR)
    assert driver.status() == "expired"


# Editing


async def test_an_unchanged_definition_makes_no_revision(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE / 2)
    edited = await job_edits.edit(driver.database, Scope(driver.workspace, BEN), job_id, definition())
    assert not edited.has_changed
    assert (edited.job.revision, edited.job.status) == (1, JobStatus.ACTIVE)
    assert edited.job.next_at == driver.clock.now() + MINUTE / 2
    assert driver.audited() == ["job.created"]


async def test_a_stale_revision_is_refused(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    assert (await edit(driver, job_id, definition(name="other"), 1)).revision == 2
    with pytest.raises(StaleRevision, match="revision 2, not 1"):
        await edit(driver, job_id, definition(name="third"), 1)
    assert (await jobs.get(driver.database, driver.workspace, job_id)).definition.name == "other"


@pytest.mark.requirement("S2-10", "X-6")
async def test_a_new_schedule_counts_from_the_edit_and_raises_its_revision(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("0 * * * *"))
    now = driver.clock.advance(10 * MINUTE)
    edited = await edit(driver, job_id, definition(Cron("*/15 * * * *")))
    assert edited.next_at == now + 5 * MINUTE
    assert driver.timer("schedule_rev", "cursor_at", "due_at") == (2, now, now + 5 * MINUTE)
    assert driver.audited() == ["job.created", "job.edited"]


async def test_a_new_pace_counts_from_the_edit_even_with_the_old_anchor(driver: ServiceDriver) -> None:
    job_id = await driver.job(Interval(10 * MINUTE))
    stored = (await jobs.get(driver.database, driver.workspace, job_id)).definition
    now = driver.clock.advance(4 * MINUTE)
    assert isinstance(stored.spec.schedule, Interval)
    faster = replace(stored.spec.schedule, every=3 * MINUTE)
    edited = await edit(driver, job_id, replace(stored, spec=replace(stored.spec, schedule=faster)))
    assert edited.next_at == now + 3 * MINUTE


async def test_another_edit_keeps_cursor_and_schedule_revision(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    before = driver.timer("cursor_at", "due_at", "schedule_rev")
    driver.clock.advance(MINUTE / 2)
    edited = await edit(driver, job_id, definition(name="renamed", priority=3))
    assert (edited.revision, driver.timer("cursor_at", "due_at", "schedule_rev")) == (2, before)


async def test_a_time_that_was_due_before_the_edit_is_recorded_under_the_old_schedule(
    driver: ServiceDriver,
) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    driver.clock.advance(MINUTE + timedelta(seconds=1))
    await edit(driver, job_id, definition(Cron("0 0 * * *")))
    assert driver.sql("SELECT trigger, schedule_rev, planned_for FROM foliot.runs") == [
        ("schedule", 1, driver.clock.now() - timedelta(seconds=1))
    ]
    driver.balance()


async def test_what_went_by_in_a_pause_is_recorded_when_its_schedule_is_replaced(
    driver: ServiceDriver,
) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    await pause(driver, job_id)
    driver.clock.advance(3 * MINUTE)
    await edit(driver, job_id, definition(Cron("*/2 * * * *")))
    assert driver.status() == "paused"
    driver.clock.advance(4 * MINUTE)
    await resume(driver, job_id)
    assert driver.sql("SELECT schedule_rev, count, skip_reason FROM foliot.runs ORDER BY number") == [
        (1, 3, "paused"),
        (2, 2, "paused"),
    ]


async def test_a_time_that_was_put_off_past_the_edit_is_recorded_with_the_reason(
    driver: ServiceDriver,
) -> None:
    """Planned every hour from noon on, and put off until six: two of them have gone by when the schedule is edited."""
    evening = Window(time(18), time(23))
    job_id = await driver.job(Cron("0 * * * *"), window=evening)
    await driver.tick(HOUR + MINUTE)
    await driver.tick(HOUR)
    await edit(driver, job_id, definition(Cron("30 * * * *"), window=evening))
    [(status, reason, note, count)] = driver.sql("SELECT status, skip_reason, note, count FROM foliot.runs")
    assert (status, reason, count) == ("skipped", "operator", 2)
    assert "edited" in note
    assert driver.timer("skip_count", "schedule_rev") == (2, 2)


async def test_standing_runs_follow_an_edit_to_their_new_queue(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    await edit(
        driver,
        job_id,
        definition(rule="queue", queue="slow", type="http", priority=7, limits=Limits(timeout=HOUR)),
    )
    standing = "SELECT queue, type, priority, timeout FROM foliot."
    assert driver.sql(f"{standing}ready UNION ALL {standing}waiting") == [("slow", "http", 7, HOUR)] * 2
    assert await driver.claim(queue="default") == []
    [run] = await driver.claim(queue="slow")
    await driver.finish(run)
    assert len(await driver.claim(queue="slow")) == 1
    driver.balance()


async def test_those_in_line_start_when_an_edit_allows_overlap(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    for _ in range(3):
        await driver.tick(MINUTE)
    await edit(driver, job_id, definition(rule="concurrent"))
    assert [where for _, where, _ in driver.runs()] == ["ready"] * 3
    assert driver.timer("live", "waiting") == (3, 0)
    driver.balance()


@pytest.mark.parametrize(
    ("first", "then", "status"),
    [
        (definition(Cron("* * * * *"), max_runs=1), definition(Cron("* * * * *"), max_runs=2), "active"),
        (
            definition(Cron("* * * * *"), max_runs=1),
            definition(Cron("* * * * *"), max_runs=1, priority=1),
            "completed",
        ),
        (definition(Cron("* * * * *"), max_runs=1), definition(Manual()), "active"),
    ],
)
async def test_a_completed_job_lives_again_when_an_edit_gives_it_times(
    driver: ServiceDriver, first: Definition, then: Definition, status: str
) -> None:
    job_id = (await jobs.create(driver.database, Scope(driver.workspace, ANA), first)).id
    await driver.tick(MINUTE)
    await driver.work()
    assert driver.status() == "completed"
    driver.clock.advance(HOUR)
    await edit(driver, job_id, then)
    assert driver.status() == status
    await driver.tick()
    assert len(driver.runs()) == 1  # the hour in between is nobody's


async def test_an_expired_one_shot_can_be_given_a_new_moment(driver: ServiceDriver) -> None:
    job_id = await driver.job(Once(driver.clock.now() + MINUTE), misfire=Misfire(MisfireRule.SKIP))
    await driver.tick(HOUR)
    assert driver.status() == "expired"
    edited = await edit(driver, job_id, definition(Once(driver.clock.now() + HOUR)))
    assert (driver.status(), edited.next_at) == ("active", driver.clock.now() + HOUR)


async def test_a_later_start_postpones_and_an_earlier_one_starts(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    start = driver.clock.now() + HOUR
    edited = await edit(driver, job_id, definition(Cron("* * * * *"), start_at=start))
    assert (driver.status(), edited.next_at) == ("pending", start)
    await edit(driver, job_id, definition(Cron("* * * * *")))
    assert driver.status() == "active"
    assert await driver.tick(MINUTE) == 1


async def test_an_edit_that_ends_a_job_expires_it(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    now = driver.clock.advance(MINUTE / 2)
    await edit(driver, job_id, definition(Cron("* * * * *"), end_at=now - MINUTE))
    assert (driver.status(), driver.timer("next_at")) == ("expired", (None,))


async def test_an_edit_beside_a_manual_run_does_not_move_a_chain(driver: ServiceDriver) -> None:
    chain = Interval(10 * MINUTE, mode=IntervalMode.FIXED_DELAY)
    job_id = await driver.job(chain)
    before = driver.timer("due_at", "next_at")
    driver.clock.advance(MINUTE)
    await run_control.run_now(driver.database, Scope(driver.workspace, ANA), job_id)
    await edit(driver, job_id, definition(chain, name="renamed"))
    assert driver.timer("due_at", "next_at") == before
    await driver.work()
    assert driver.timer("due_at", "next_at") == before


async def test_an_edit_beside_its_own_run_leaves_a_chain_to_the_end_of_that_run(
    driver: ServiceDriver,
) -> None:
    chain = Interval(10 * MINUTE, mode=IntervalMode.FIXED_DELAY)
    job_id = await driver.job(chain)
    await driver.tick(10 * MINUTE)
    await edit(driver, job_id, definition(chain, name="renamed"))
    assert driver.timer("next_at") == (None,)
    driver.clock.advance(MINUTE)
    await driver.work()
    assert driver.timer("next_at") == (driver.clock.now() + 10 * MINUTE,)


async def test_a_job_that_cannot_be_planned_is_mended_by_an_edit(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    broken = '{"schedule":{"every":60,"kind":"interval"},"type":"python"}'  # an interval that nobody anchored
    driver.owner.execute("UPDATE foliot.timers SET spec = %s", [broken])
    await driver.tick(MINUTE)
    assert driver.runs() == [("schedule", "skipped", "scheduler_error")]
    await edit(driver, job_id, definition(Cron("*/2 * * * *")))
    assert driver.timer("errors") == (0,)
    assert await driver.tick(2 * MINUTE) == 1


# Pausing and resuming


async def test_a_paused_job_plans_nothing_and_resume_writes_one_record(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await pause(driver, job_id, reason="stock-taking")
    stored = await jobs.get(driver.database, driver.workspace, job_id)
    assert (stored.status, stored.status_reason, stored.status_by, stored.next_at) == (
        "paused",
        "stock-taking",
        "ben",
        None,
    )
    assert await driver.tick(90 * MINUTE) == 0
    moved = await resume(driver, job_id)
    assert (moved.status, moved.next_at) == ("active", driver.clock.now() + MINUTE)
    assert driver.sql("SELECT status, skip_reason, count FROM foliot.runs") == [("skipped", "paused", 90)]
    assert driver.audited() == ["job.created", "job.paused", "job.resumed"]
    driver.balance()


@pytest.mark.parametrize(("rule", "ran"), [(MisfireRule.LATEST, 1), (MisfireRule.ALL, 10)])
async def test_only_catch_up_runs_what_went_by(driver: ServiceDriver, rule: MisfireRule, ran: int) -> None:
    job_id = await driver.job(misfire=Misfire(rule))
    await pause(driver, job_id)
    driver.clock.advance(90 * MINUTE)
    await resume(driver, job_id, catch_up=True)
    assert driver.sql("SELECT count FROM foliot.runs WHERE status = 'skipped'") == [(90 - ran,)]
    assert driver.sql("SELECT count(*) FROM foliot.runs WHERE status IS NULL") == [(ran,)]
    driver.balance()


async def test_a_fire_that_no_worker_had_waits_for_the_resume(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    await pause(driver, job_id)
    assert [where for _, where, _ in driver.runs()] == ["waiting", "waiting"]
    assert await driver.claim() == []
    driver.balance()
    await resume(driver, job_id)
    [first] = driver.sql("SELECT id FROM foliot.runs WHERE number = 1")
    assert [run.run_id for run in await driver.claim()] == [*first]
    driver.balance()


@pytest.mark.requirement("S3-6")
async def test_a_pause_may_drop_what_no_worker_has_yet(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    await driver.tick(MINUTE)
    [live] = await driver.claim()
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    await run_control.run_now(driver.database, Scope(driver.workspace, BEN), job_id)
    await pause(driver, job_id, drop_queued=True)
    assert driver.runs() == [
        ("schedule", "running", None), ("schedule", "skipped", "paused"), ("schedule", "skipped", "paused"),
        ("manual", "waiting", None),
    ]  # fmt: skip
    driver.balance()
    assert await driver.finish(live)
    assert [run.trigger for run in await driver.claim()] == [Trigger.MANUAL]
    driver.balance()


async def test_a_pause_with_nothing_left_to_drop_is_a_pause(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    await pause(driver, job_id, drop_queued=True)
    assert (driver.status(), driver.runs()) == ("paused", [("schedule", "skipped", "paused")])
    driver.balance()
    await resume(driver, job_id)
    await driver.tick(MINUTE)
    assert len(await driver.claim()) == 1
    driver.balance()


async def test_a_pause_of_a_paused_job_changes_its_end(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    since = driver.clock.now()
    await pause(driver, job_id, reason="move", until=since + HOUR)
    driver.clock.advance(MINUTE)
    later = since + 3 * HOUR
    assert (await pause(driver, job_id, until=later)).status is JobStatus.PAUSED
    fields = "SELECT paused_until, status_reason, status_at FROM foliot.jobs"
    assert driver.sql(fields) == [(later, "move", since)]
    await pause(driver, job_id, until=later)
    await pause(driver, job_id, reason="move", until=later)
    assert driver.audited() == ["job.created", "job.paused", "job.paused"], "the same pause changes nothing"
    sooner = since + 5 * MINUTE
    await pause(driver, job_id, reason="done soon", until=sooner)
    assert driver.sql(fields) == [(sooner, "done soon", since)]
    with pytest.raises(Invalid, match="future"):
        await pause(driver, job_id, until=since)
    await pause(driver, job_id)
    assert driver.sql(fields) == [(None, "done soon", since)]
    driver.clock.advance(4 * HOUR)
    assert await job_status.resume_due(driver.database) == 0
    assert driver.sql("SELECT event FROM foliot.notices") == [("job_paused",)]
    driver.balance()


async def test_a_second_pause_drops_the_queued_runs(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    await pause(driver, job_id)
    await pause(driver, job_id, drop_queued=True)
    assert (driver.status(), driver.runs()) == ("paused", [("schedule", "skipped", "paused")])
    driver.balance()


async def test_what_runs_when_a_job_is_paused_runs_on(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    await pause(driver, job_id)
    assert await driver.finish(run)
    assert (driver.status(), driver.runs()) == ("paused", [("schedule", "succeeded", None)])
    driver.balance()


async def test_concurrent_runs_held_by_a_pause_all_start_again(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="concurrent")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    await pause(driver, job_id)
    assert driver.timer("live", "waiting") == (0, 2)
    await resume(driver, job_id)
    assert len(await driver.claim()) == 2
    driver.balance()


async def test_concurrent_runs_held_by_a_pause_need_not_wait_for_one_that_runs(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="concurrent")
    await driver.tick(MINUTE)
    [running] = await driver.claim()
    await driver.tick(MINUTE)
    await pause(driver, job_id)
    assert [where for _, where, _ in driver.runs()] == ["running", "waiting"]
    await resume(driver, job_id)
    assert [where for _, where, _ in driver.runs()] == ["running", "ready"]
    assert await driver.finish(running)
    driver.balance()


async def test_an_edit_that_allows_overlap_starts_nothing_in_a_pause(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    await pause(driver, job_id)
    await edit(driver, job_id, definition(rule="concurrent"))
    assert await driver.claim() == []
    await resume(driver, job_id)
    assert len(await driver.claim()) == 1  # made when its job minded overlap
    driver.balance()


async def test_a_pause_with_an_end_is_over_by_itself(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await pause(driver, job_id, until=driver.clock.now() + HOUR)
    driver.clock.advance(HOUR - MINUTE)
    assert await job_status.resume_due(driver.database) == 0
    driver.clock.advance(MINUTE)
    assert await job_status.resume_due(driver.database) == 1
    assert await job_status.resume_due(driver.database) == 0
    assert driver.status() == "active"
    assert driver.sql("SELECT skip_reason, count FROM foliot.runs") == [("paused", 60)]


async def test_a_pause_that_ends_before_it_begins_is_refused(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    with pytest.raises(Invalid):
        await pause(driver, job_id, until=driver.clock.now())


@pytest.mark.requirement("S4-API-9")
async def test_resume_forgives_the_failures_that_paused_a_job(driver: ServiceDriver) -> None:
    job_id = await driver.job(breaker=Breaker(2))
    for _ in range(2):
        await driver.tick(MINUTE)
        await driver.work(BOOM)
    assert (driver.status(), driver.timer("failures_in_a_row")) == ("paused", (2,))
    await resume(driver, job_id)
    await driver.tick(MINUTE)
    await driver.work(BOOM)
    assert (driver.status(), driver.timer("failures_in_a_row")) == ("active", (1,))


async def test_a_chain_that_was_held_back_records_no_time_it_never_had(driver: ServiceDriver) -> None:
    job_id = await driver.job(Interval(MINUTE, mode=IntervalMode.FIXED_DELAY))
    await driver.tick(MINUTE)
    await pause(driver, job_id)
    driver.clock.advance(HOUR)
    await resume(driver, job_id)
    assert driver.runs() == [("schedule", "ready", None)]
    await driver.work()
    assert driver.timer("next_at") == (driver.clock.now() + MINUTE,)


async def test_resuming_a_job_that_has_not_started_leaves_it_pending(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"), start_at=driver.clock.now() + HOUR)
    await pause(driver, job_id)
    driver.clock.advance(MINUTE)
    assert (await resume(driver, job_id)).status == "pending"
    assert driver.status() == "pending"


async def test_a_run_held_by_a_pause_starts_though_its_job_was_postponed(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    await driver.tick(MINUTE)
    await edit(driver, job_id, definition(Cron("* * * * *"), start_at=driver.clock.now() + HOUR))
    await pause(driver, job_id)
    await resume(driver, job_id)
    assert driver.runs() == [("schedule", "ready", None)]
    driver.balance()


async def test_a_pause_that_cannot_end_by_itself_stops_no_other(driver: ServiceDriver) -> None:
    broken, sound = await driver.job(), await driver.job()
    until = driver.clock.now() + MINUTE
    for job_id in (broken, sound):
        await pause(driver, job_id, until=until)
    nobody_anchored = '{"schedule":{"every":60,"kind":"interval"},"type":"python"}'
    driver.owner.execute("UPDATE foliot.timers SET spec = %s WHERE job_id = %s", [nobody_anchored, broken])
    driver.clock.advance(MINUTE)
    assert await job_status.resume_due(driver.database, limit=1) == 1
    assert await job_status.resume_due(driver.database, limit=1) == 1
    assert await job_status.resume_due(driver.database, limit=1) == 0
    states = driver.sql("SELECT id, status FROM foliot.jobs")
    assert sorted(status for _, status in states) == ["active", "paused"]
    assert (sound, "active") in states


async def test_a_disabled_job_is_switched_on_by_resume(driver: ServiceDriver) -> None:
    job_id = await driver.job(enabled=False)
    assert (driver.status(), await driver.tick(HOUR)) == ("disabled", 0)
    await resume(driver, job_id)
    assert (driver.status(), await driver.tick(MINUTE)) == ("active", 1)
    await job_status.disable(driver.database, Scope(driver.workspace, BEN), job_id, reason="over")
    assert (driver.status(), await driver.tick(HOUR)) == ("disabled", 0)


@pytest.mark.parametrize("verb", [resume, archive])
async def test_a_move_from_the_wrong_place_is_refused(driver: ServiceDriver, verb: Any) -> None:
    job_id = await driver.job()
    if verb is not resume:
        await verb(driver, job_id)
    with pytest.raises(IllegalMove):
        await verb(driver, job_id)


# Archiving and purging


async def test_an_archived_job_ends_what_stands_and_lets_run_what_runs(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    for _ in range(3):
        await driver.tick(MINUTE)
    [running] = await driver.claim()
    await archive(driver, job_id)
    assert [where for _, where, _ in driver.runs()] == ["running", "cancelled", "cancelled"]
    assert await driver.tick(HOUR) == 0
    assert await driver.finish(running)
    assert (driver.status(), driver.timer("live", "waiting", "due_at = 'infinity'")) == (
        "archived",
        (0, 0, True),
    )
    driver.balance()
    with pytest.raises(Conflict, match="archived"):
        await run_control.run_now(driver.database, Scope(driver.workspace, BEN), job_id)
    with pytest.raises(Conflict, match="archived"):
        await edit(driver, job_id, definition(name="other"))


@pytest.mark.requirement("S1-D2")
async def test_a_purge_leaves_nothing_but_its_entry(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    for _ in range(3):
        await driver.tick(MINUTE)
    await driver.work()
    assert await purge(driver, job_id) == 3
    for table in ("jobs", "timers", "runs", "attempts", "ready", "waiting", "leases"):
        assert driver.sql(f"SELECT count(*) FROM foliot.{table}") == [(0,)]
    assert driver.audited() == ["job.created", "job.purged"]


async def test_a_long_history_is_purged_in_pieces_and_nobody_sees_what_is_left(
    driver: ServiceDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_status_steps, "PURGED_AT_ONCE", 2)
    job_id, other = await driver.job(name="long"), await driver.job(name="other")
    for _ in range(5):
        await driver.tick(MINUTE)
    assert await purge(driver, job_id) == 2
    with pytest.raises(NotFound):
        await jobs.get(driver.database, driver.workspace, job_id)
    with pytest.raises(NotFound):
        await history.of_job(driver.database, Scope(driver.workspace), job_id)
    archived = read_query("status:archived,active", JOBS, driver.clock.now())
    seen = await job_search.jobs(driver.database, Scope(driver.workspace), archived)
    assert [each.id for each in seen.items] == [other]
    assert await driver.tick(MINUTE) == 1  # the other one's
    while await job_status.finish_purges(driver.database, 2):
        pass
    assert driver.sql("SELECT DISTINCT job_id FROM foliot.runs") == [(other,)]
    assert driver.sql("SELECT id FROM foliot.jobs") == [(other,)]


async def test_a_purge_under_way_needs_force_and_then_refuses_the_result(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    with pytest.raises(Conflict, match="under way"):
        await purge(driver, job_id)
    await purge(driver, job_id, force=True)
    assert not await driver.finish(run)


@pytest.mark.parametrize("verb", [archive, purge])
async def test_a_job_that_others_depend_on_goes_only_when_they_are_detached(
    driver: ServiceDriver, verb: Any
) -> None:
    upstream, dependent = await driver.job(), await driver.job(Manual(), name="report")
    depend(driver, dependent, upstream)
    with pytest.raises(Conflict, match="report"):
        await verb(driver, upstream)
    await verb(driver, upstream, detach=True)
    assert driver.sql("SELECT count(*) FROM foliot.dependencies") == [(0,)]


def depend(driver: ServiceDriver, job_id: JobId, upstream: JobId) -> None:
    driver.owner.execute(
        'INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode)'
        " VALUES (%s, %s, %s, 'success', 'trigger')",
        [driver.workspace, job_id, upstream],
    )
    driver.owner.execute("UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream])


async def test_an_edit_sets_what_a_job_depends_on_and_refuses_a_circle(driver: ServiceDriver) -> None:
    upstream, dependent = await driver.job(Manual()), await driver.job(Manual(), name="report")
    after = replace(definition(Manual(), name="report"), depends_on=(Edge(upstream),))
    await edit(driver, dependent, after)
    assert driver.sql("SELECT job_id, upstream_id FROM foliot.dependencies") == [(dependent, upstream)]
    assert driver.sql("SELECT job_id FROM foliot.timers WHERE has_dependents") == [(upstream,)]
    with pytest.raises(Invalid, match="wait for each other"):
        await edit(driver, upstream, replace(definition(Manual()), depends_on=(Edge(dependent),)))
    with pytest.raises(Invalid, match="no schedule of its own"):
        await edit(driver, dependent, replace(after, spec=definition(Cron("* * * * *")).spec))
    await edit(driver, dependent, definition(Manual(), name="report"))
    assert driver.sql("SELECT count(*) FROM foliot.dependencies") == [(0,)]


async def test_an_edit_names_calendars_that_are_there(driver: ServiceDriver) -> None:
    sundays = Calendar("sundays", CalendarKind.BLACKOUT, (Weekly(time(0), time(0), frozenset((6,))),))
    calendar_id = await calendars.create(driver.database, Scope(driver.workspace, ANA), sundays)
    job_id = await driver.job(Cron("0 12 * * *"))
    await edit(driver, job_id, definition(Cron("0 12 * * *"), calendars=(calendar_id,)))
    assert driver.sql("SELECT job_id, calendar_id FROM foliot.job_calendars") == [(job_id, calendar_id)]
    with pytest.raises(Invalid, match="no such calendar"):
        await edit(driver, job_id, definition(Cron("0 12 * * *"), calendars=(CalendarId(uuid4()),)))
    await edit(driver, job_id, definition(Cron("0 12 * * *")))
    assert driver.sql("SELECT count(*) FROM foliot.job_calendars") == [(0,)]


# Other workspaces


VERBS: dict[str, Callable[[ServiceDriver, WorkspaceId, JobId], Awaitable[object]]] = {
    "get": lambda driver, ws, job: jobs.get(driver.database, ws, job),
    "edit": lambda driver, ws, job: job_edits.edit(
        driver.database, Scope(ws, EVE), job, definition(name="x")
    ),
    "pause": lambda driver, ws, job: job_status.pause(driver.database, Scope(ws, EVE), job),
    "resume": lambda driver, ws, job: job_status.resume(driver.database, Scope(ws, EVE), job),
    "disable": lambda driver, ws, job: job_status.disable(driver.database, Scope(ws, EVE), job),
    "archive": lambda driver, ws, job: job_status.archive(driver.database, Scope(ws, EVE), job),
    "purge": lambda driver, ws, job: job_status.purge(driver.database, Scope(ws, EVE), job, force=True),
    "run": lambda driver, ws, job: run_control.run_now(driver.database, Scope(ws, EVE), job),
    "skip": lambda driver, ws, job: run_control.skip_next(driver.database, Scope(ws, EVE), job, reason="x"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_job_is_as_little_there_as_one_that_never_was(
    driver: ServiceDriver, verb: str
) -> None:
    job_id, globex = await driver.job(), WorkspaceId(uuid4())
    driver.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', clock_timestamp())",
        [globex],
    )
    with pytest.raises(NotFound) as foreign:
        await VERBS[verb](driver, globex, job_id)
    with pytest.raises(NotFound) as unknown:
        await VERBS[verb](driver, globex, JobId(uuid4()))
    assert (foreign.value.message, foreign.value.hint) == (unknown.value.message, unknown.value.hint)
    assert (driver.status(), driver.audited()) == ("active", ["job.created"])


async def test_jobs_from_the_archive_count_for_the_quota_though_it_was_counted_before(
    driver: ServiceDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"NEAR": 0, "WORTH_REMEMBERING": 1, "SLACK": timedelta(0)}.items():
        monkeypatch.setattr(quota_steps, name, value)
    limited = replace(BEN, quotas=Quotas(jobs=3))
    first = [await driver.job(name=f"first {number}") for number in range(3)]
    for job_id in first:
        await archive(driver, job_id)
    driver.clock.advance(MINUTE)
    scope = Scope(driver.workspace, limited)
    for number in range(2):
        await jobs.create(driver.database, scope, definition(name=f"second {number}"))
    await job_status.restore(driver.database, scope, first[0])
    with pytest.raises(QuotaExceeded):
        await job_status.restore(driver.database, scope, first[1])
