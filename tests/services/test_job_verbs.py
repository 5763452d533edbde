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
from foliot.domain.errors import Conflict, IllegalMove, Invalid, NotFound, StaleRevision
from foliot.domain.filters import read_query
from foliot.domain.filters.fields import JOBS
from foliot.domain.ids import CalendarId, JobId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Breaker, Limits, Misfire, MisfireRule
from foliot.domain.run import RunError
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
from foliot.services.jobs import calendars, job_edits, job_search, job_status, job_status_steps, jobs
from foliot.services.jobs.job_search import StoredJob
from foliot.services.runs import history, run_control
from foliot.testing.fixtures import ANA, BEN, EVE
from tests.services.shop import MINUTE, Shop, definition

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
BOOM = Failed(RunError("boom", "It broke."))


async def edit(shop: Shop, job_id: JobId, wanted: Definition, expected: int | None = None) -> StoredJob:
    scope = Scope(shop.workspace, BEN, expected_revision=expected)
    return (await job_edits.edit(shop.database, scope, job_id, wanted)).job


async def pause(shop: Shop, job_id: JobId, **options: Any) -> job_status.Moved:
    return await job_status.pause(shop.database, Scope(shop.workspace, BEN), job_id, **options)


async def resume(shop: Shop, job_id: JobId, *, catch_up: bool = False) -> job_status.Moved:
    return await job_status.resume(shop.database, Scope(shop.workspace, BEN), job_id, catch_up=catch_up)


async def archive(shop: Shop, job_id: JobId, *, detach: bool = False) -> job_status.Moved:
    return await job_status.archive(shop.database, Scope(shop.workspace, BEN), job_id, detach=detach)


async def purge(shop: Shop, job_id: JobId, *, force: bool = False, detach: bool = False) -> int:
    return await job_status.purge(
        shop.database, Scope(shop.workspace, BEN), job_id, force=force, detach=detach
    )


# Creating


async def test_a_one_shot_whose_moment_has_passed_is_refused(shop: Shop) -> None:
    with pytest.raises(Invalid, match="passed"):
        await shop.job(Once(shop.clock.now() - HOUR))


async def test_a_one_shot_of_this_moment_runs_at_once(shop: Shop) -> None:
    await shop.job(Once(shop.clock.now() - timedelta(seconds=5)))
    assert await shop.tick() == 1
    assert shop.runs() == [("schedule", "ready", None)]


async def test_a_job_whose_end_has_passed_is_expired_from_the_start(shop: Shop) -> None:
    await shop.job(Cron("* * * * *"), end_at=shop.clock.now() - HOUR)
    assert shop.status() == "expired"


# Editing


async def test_an_unchanged_definition_makes_no_revision(shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE / 2)
    edited = await job_edits.edit(shop.database, Scope(shop.workspace, BEN), job_id, definition())
    assert not edited.has_changed
    assert (edited.job.revision, edited.job.status) == (1, JobStatus.ACTIVE)
    assert edited.job.next_at == shop.clock.now() + MINUTE / 2
    assert shop.audited() == ["job.created"]


async def test_a_stale_revision_is_refused(shop: Shop) -> None:
    job_id = await shop.job()
    assert (await edit(shop, job_id, definition(name="other"), 1)).revision == 2
    with pytest.raises(StaleRevision, match="revision 2, not 1"):
        await edit(shop, job_id, definition(name="third"), 1)
    assert (await jobs.get(shop.database, shop.workspace, job_id)).definition.name == "other"


async def test_a_new_schedule_counts_from_the_edit_and_raises_its_revision(shop: Shop) -> None:
    job_id = await shop.job(Cron("0 * * * *"))
    now = shop.clock.advance(10 * MINUTE)
    edited = await edit(shop, job_id, definition(Cron("*/15 * * * *")))
    assert edited.next_at == now + 5 * MINUTE
    assert shop.timer("schedule_rev", "cursor_at", "due_at") == (2, now, now + 5 * MINUTE)
    assert shop.audited() == ["job.created", "job.edited"]


async def test_a_new_pace_counts_from_the_edit_even_with_the_old_anchor(shop: Shop) -> None:
    job_id = await shop.job(Interval(10 * MINUTE))
    stored = (await jobs.get(shop.database, shop.workspace, job_id)).definition
    now = shop.clock.advance(4 * MINUTE)
    assert isinstance(stored.spec.schedule, Interval)
    faster = replace(stored.spec.schedule, every=3 * MINUTE)
    edited = await edit(shop, job_id, replace(stored, spec=replace(stored.spec, schedule=faster)))
    assert edited.next_at == now + 3 * MINUTE


async def test_another_edit_keeps_cursor_and_schedule_revision(shop: Shop) -> None:
    job_id = await shop.job()
    before = shop.timer("cursor_at", "due_at", "schedule_rev")
    shop.clock.advance(MINUTE / 2)
    edited = await edit(shop, job_id, definition(name="renamed", priority=3))
    assert (edited.revision, shop.timer("cursor_at", "due_at", "schedule_rev")) == (2, before)


async def test_a_time_that_was_due_before_the_edit_is_recorded_under_the_old_schedule(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    shop.clock.advance(MINUTE + timedelta(seconds=1))
    await edit(shop, job_id, definition(Cron("0 0 * * *")))
    assert shop.sql("SELECT trigger, schedule_rev, planned_for FROM foliot.runs") == [
        ("schedule", 1, shop.clock.now() - timedelta(seconds=1))
    ]
    shop.balance()


async def test_what_went_by_in_a_pause_is_recorded_when_its_schedule_is_replaced(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    await pause(shop, job_id)
    shop.clock.advance(3 * MINUTE)
    await edit(shop, job_id, definition(Cron("*/2 * * * *")))
    assert shop.status() == "paused"
    shop.clock.advance(4 * MINUTE)
    await resume(shop, job_id)
    assert shop.sql("SELECT schedule_rev, count, skip_reason FROM foliot.runs ORDER BY number") == [
        (1, 3, "paused"),
        (2, 2, "paused"),
    ]


async def test_a_time_that_was_put_off_past_the_edit_is_recorded_with_the_reason(shop: Shop) -> None:
    """Planned every hour from noon on, and put off until six: two of them have gone by when the schedule is edited."""
    evening = Window(time(18), time(23))
    job_id = await shop.job(Cron("0 * * * *"), window=evening)
    await shop.tick(HOUR + MINUTE)
    await shop.tick(HOUR)
    await edit(shop, job_id, definition(Cron("30 * * * *"), window=evening))
    [(status, reason, note, count)] = shop.sql("SELECT status, skip_reason, note, count FROM foliot.runs")
    assert (status, reason, count) == ("skipped", "operator", 2)
    assert "edited" in note
    assert shop.timer("skip_count", "schedule_rev") == (2, 2)


async def test_standing_runs_follow_an_edit_to_their_new_queue(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    await edit(
        shop,
        job_id,
        definition(rule="queue", queue="slow", type="http", priority=7, limits=Limits(timeout=HOUR)),
    )
    standing = "SELECT queue, type, priority, timeout FROM foliot."
    assert shop.sql(f"{standing}ready UNION ALL {standing}waiting") == [("slow", "http", 7, HOUR)] * 2
    assert await shop.claim(queue="default") == []
    [run] = await shop.claim(queue="slow")
    await shop.finish(run)
    assert len(await shop.claim(queue="slow")) == 1
    shop.balance()


async def test_those_in_line_start_when_an_edit_allows_overlap(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    for _ in range(3):
        await shop.tick(MINUTE)
    await edit(shop, job_id, definition(rule="concurrent"))
    assert [where for _, where, _ in shop.runs()] == ["ready"] * 3
    assert shop.timer("live", "waiting") == (3, 0)
    shop.balance()


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
    shop: Shop, first: Definition, then: Definition, status: str
) -> None:
    job_id = (await jobs.create(shop.database, Scope(shop.workspace, ANA), first)).id
    await shop.tick(MINUTE)
    await shop.work()
    assert shop.status() == "completed"
    shop.clock.advance(HOUR)
    await edit(shop, job_id, then)
    assert shop.status() == status
    await shop.tick()
    assert len(shop.runs()) == 1  # the hour in between is nobody's


async def test_an_expired_one_shot_can_be_given_a_new_moment(shop: Shop) -> None:
    job_id = await shop.job(Once(shop.clock.now() + MINUTE), misfire=Misfire(MisfireRule.SKIP))
    await shop.tick(HOUR)
    assert shop.status() == "expired"
    edited = await edit(shop, job_id, definition(Once(shop.clock.now() + HOUR)))
    assert (shop.status(), edited.next_at) == ("active", shop.clock.now() + HOUR)


async def test_a_later_start_postpones_and_an_earlier_one_starts(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    start = shop.clock.now() + HOUR
    edited = await edit(shop, job_id, definition(Cron("* * * * *"), start_at=start))
    assert (shop.status(), edited.next_at) == ("pending", start)
    await edit(shop, job_id, definition(Cron("* * * * *")))
    assert shop.status() == "active"
    assert await shop.tick(MINUTE) == 1


async def test_an_edit_that_ends_a_job_expires_it(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    now = shop.clock.advance(MINUTE / 2)
    await edit(shop, job_id, definition(Cron("* * * * *"), end_at=now - MINUTE))
    assert (shop.status(), shop.timer("next_at")) == ("expired", (None,))


async def test_an_edit_beside_a_run_by_hand_does_not_move_a_chain(shop: Shop) -> None:
    chain = Interval(10 * MINUTE, mode=IntervalMode.FIXED_DELAY)
    job_id = await shop.job(chain)
    before = shop.timer("due_at", "next_at")
    shop.clock.advance(MINUTE)
    await run_control.run_now(shop.database, Scope(shop.workspace, ANA), job_id)
    await edit(shop, job_id, definition(chain, name="renamed"))
    assert shop.timer("due_at", "next_at") == before
    await shop.work()
    assert shop.timer("due_at", "next_at") == before


async def test_an_edit_beside_its_own_run_leaves_a_chain_to_the_end_of_that_run(shop: Shop) -> None:
    chain = Interval(10 * MINUTE, mode=IntervalMode.FIXED_DELAY)
    job_id = await shop.job(chain)
    await shop.tick(10 * MINUTE)
    await edit(shop, job_id, definition(chain, name="renamed"))
    assert shop.timer("next_at") == (None,)
    shop.clock.advance(MINUTE)
    await shop.work()
    assert shop.timer("next_at") == (shop.clock.now() + 10 * MINUTE,)


async def test_a_job_that_cannot_be_planned_is_mended_by_an_edit(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    broken = '{"schedule":{"every":60,"kind":"interval"},"type":"python"}'  # an interval that nobody anchored
    shop.owner.execute("UPDATE foliot.timers SET spec = %s", [broken])
    await shop.tick(MINUTE)
    assert shop.runs() == [("schedule", "skipped", "scheduler_error")]
    await edit(shop, job_id, definition(Cron("*/2 * * * *")))
    assert shop.timer("errors") == (0,)
    assert await shop.tick(2 * MINUTE) == 1


# Pausing and resuming


async def test_a_paused_job_plans_nothing_and_resume_writes_one_record(shop: Shop) -> None:
    job_id = await shop.job()
    await pause(shop, job_id, reason="stock-taking")
    stored = await jobs.get(shop.database, shop.workspace, job_id)
    assert (stored.status, stored.status_reason, stored.status_by, stored.next_at) == (
        "paused",
        "stock-taking",
        "ben",
        None,
    )
    assert await shop.tick(90 * MINUTE) == 0
    moved = await resume(shop, job_id)
    assert (moved.status, moved.next_at) == ("active", shop.clock.now() + MINUTE)
    assert shop.sql("SELECT status, skip_reason, count FROM foliot.runs") == [("skipped", "paused", 90)]
    assert shop.audited() == ["job.created", "job.paused", "job.resumed"]
    shop.balance()


@pytest.mark.parametrize(("rule", "ran"), [(MisfireRule.LATEST, 1), (MisfireRule.ALL, 10)])
async def test_only_catch_up_runs_what_went_by(shop: Shop, rule: MisfireRule, ran: int) -> None:
    job_id = await shop.job(misfire=Misfire(rule))
    await pause(shop, job_id)
    shop.clock.advance(90 * MINUTE)
    await resume(shop, job_id, catch_up=True)
    assert shop.sql("SELECT count FROM foliot.runs WHERE status = 'skipped'") == [(90 - ran,)]
    assert shop.sql("SELECT count(*) FROM foliot.runs WHERE status IS NULL") == [(ran,)]
    shop.balance()


async def test_a_fire_that_no_worker_had_waits_for_the_resume(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    await pause(shop, job_id)
    assert [where for _, where, _ in shop.runs()] == ["waiting", "waiting"]
    assert await shop.claim() == []
    shop.balance()
    await resume(shop, job_id)
    [first] = shop.sql("SELECT id FROM foliot.runs WHERE number = 1")
    assert [run.run_id for run in await shop.claim()] == [*first]
    shop.balance()


async def test_what_runs_when_a_job_is_paused_runs_on(shop: Shop) -> None:
    job_id = await shop.job()
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    await pause(shop, job_id)
    assert await shop.finish(run)
    assert (shop.status(), shop.runs()) == ("paused", [("schedule", "succeeded", None)])
    shop.balance()


async def test_concurrent_runs_held_by_a_pause_all_start_again(shop: Shop) -> None:
    job_id = await shop.job(rule="concurrent")
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    await pause(shop, job_id)
    assert shop.timer("live", "waiting") == (0, 2)
    await resume(shop, job_id)
    assert len(await shop.claim()) == 2
    shop.balance()


async def test_concurrent_runs_held_by_a_pause_need_not_wait_for_one_that_runs(shop: Shop) -> None:
    job_id = await shop.job(rule="concurrent")
    await shop.tick(MINUTE)
    [running] = await shop.claim()
    await shop.tick(MINUTE)
    await pause(shop, job_id)
    assert [where for _, where, _ in shop.runs()] == ["running", "waiting"]
    await resume(shop, job_id)
    assert [where for _, where, _ in shop.runs()] == ["running", "ready"]
    assert await shop.finish(running)
    shop.balance()


async def test_an_edit_that_allows_overlap_starts_nothing_in_a_pause(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    await pause(shop, job_id)
    await edit(shop, job_id, definition(rule="concurrent"))
    assert await shop.claim() == []
    await resume(shop, job_id)
    assert len(await shop.claim()) == 1  # made when its job minded overlap
    shop.balance()


async def test_a_pause_with_an_end_is_over_by_itself(shop: Shop) -> None:
    job_id = await shop.job()
    await pause(shop, job_id, until=shop.clock.now() + HOUR)
    shop.clock.advance(HOUR - MINUTE)
    assert await job_status.resume_due(shop.database) == 0
    shop.clock.advance(MINUTE)
    assert await job_status.resume_due(shop.database) == 1
    assert await job_status.resume_due(shop.database) == 0
    assert shop.status() == "active"
    assert shop.sql("SELECT skip_reason, count FROM foliot.runs") == [("paused", 60)]


async def test_a_pause_that_ends_before_it_begins_is_refused(shop: Shop) -> None:
    job_id = await shop.job()
    with pytest.raises(Invalid):
        await pause(shop, job_id, until=shop.clock.now())


async def test_resume_forgives_the_failures_that_paused_a_job(shop: Shop) -> None:
    job_id = await shop.job(breaker=Breaker(2))
    for _ in range(2):
        await shop.tick(MINUTE)
        await shop.work(BOOM)
    assert (shop.status(), shop.timer("failures_in_a_row")) == ("paused", (2,))
    await resume(shop, job_id)
    await shop.tick(MINUTE)
    await shop.work(BOOM)
    assert (shop.status(), shop.timer("failures_in_a_row")) == ("active", (1,))


async def test_a_chain_that_was_held_back_records_no_time_it_never_had(shop: Shop) -> None:
    job_id = await shop.job(Interval(MINUTE, mode=IntervalMode.FIXED_DELAY))
    await shop.tick(MINUTE)
    await pause(shop, job_id)
    shop.clock.advance(HOUR)
    await resume(shop, job_id)
    assert shop.runs() == [("schedule", "ready", None)]
    await shop.work()
    assert shop.timer("next_at") == (shop.clock.now() + MINUTE,)


async def test_resuming_a_job_that_has_not_started_leaves_it_pending(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"), start_at=shop.clock.now() + HOUR)
    await pause(shop, job_id)
    shop.clock.advance(MINUTE)
    assert (await resume(shop, job_id)).status == "pending"
    assert shop.status() == "pending"


async def test_a_run_held_by_a_pause_starts_though_its_job_was_postponed(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    await shop.tick(MINUTE)
    await edit(shop, job_id, definition(Cron("* * * * *"), start_at=shop.clock.now() + HOUR))
    await pause(shop, job_id)
    await resume(shop, job_id)
    assert shop.runs() == [("schedule", "ready", None)]
    shop.balance()


async def test_a_pause_that_cannot_end_by_itself_stops_no_other(shop: Shop) -> None:
    broken, sound = await shop.job(), await shop.job()
    until = shop.clock.now() + MINUTE
    for job_id in (broken, sound):
        await pause(shop, job_id, until=until)
    nobody_anchored = '{"schedule":{"every":60,"kind":"interval"},"type":"python"}'
    shop.owner.execute("UPDATE foliot.timers SET spec = %s WHERE job_id = %s", [nobody_anchored, broken])
    shop.clock.advance(MINUTE)
    assert await job_status.resume_due(shop.database, limit=1) == 1
    assert await job_status.resume_due(shop.database, limit=1) == 1
    assert await job_status.resume_due(shop.database, limit=1) == 0
    states = shop.sql("SELECT id, status FROM foliot.jobs")
    assert sorted(status for _, status in states) == ["active", "paused"]
    assert (sound, "active") in states


async def test_a_disabled_job_is_switched_on_by_resume(shop: Shop) -> None:
    job_id = await shop.job(enabled=False)
    assert (shop.status(), await shop.tick(HOUR)) == ("disabled", 0)
    await resume(shop, job_id)
    assert (shop.status(), await shop.tick(MINUTE)) == ("active", 1)
    await job_status.disable(shop.database, Scope(shop.workspace, BEN), job_id, reason="over")
    assert (shop.status(), await shop.tick(HOUR)) == ("disabled", 0)


@pytest.mark.parametrize("verb", [pause, resume, archive])
async def test_a_move_from_the_wrong_place_is_refused(shop: Shop, verb: Any) -> None:
    job_id = await shop.job()
    if verb is not resume:
        await verb(shop, job_id)
    with pytest.raises(IllegalMove):
        await verb(shop, job_id)


# Archiving and purging


async def test_an_archived_job_ends_what_stands_and_lets_run_what_runs(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    for _ in range(3):
        await shop.tick(MINUTE)
    [running] = await shop.claim()
    await archive(shop, job_id)
    assert [where for _, where, _ in shop.runs()] == ["running", "cancelled", "cancelled"]
    assert await shop.tick(HOUR) == 0
    assert await shop.finish(running)
    assert (shop.status(), shop.timer("live", "waiting", "due_at = 'infinity'")) == ("archived", (0, 0, True))
    shop.balance()
    with pytest.raises(Conflict, match="archived"):
        await run_control.run_now(shop.database, Scope(shop.workspace, BEN), job_id)
    with pytest.raises(Conflict, match="archived"):
        await edit(shop, job_id, definition(name="other"))


async def test_a_purge_leaves_nothing_but_its_entry(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    for _ in range(3):
        await shop.tick(MINUTE)
    await shop.work()
    assert await purge(shop, job_id) == 3
    for table in ("jobs", "timers", "runs", "attempts", "ready", "waiting", "leases"):
        assert shop.sql(f"SELECT count(*) FROM foliot.{table}") == [(0,)]
    assert shop.audited() == ["job.created", "job.purged"]


async def test_a_long_history_is_purged_in_pieces_and_nobody_sees_what_is_left(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_status_steps, "PURGED_AT_ONCE", 2)
    job_id, other = await shop.job(name="long"), await shop.job(name="other")
    for _ in range(5):
        await shop.tick(MINUTE)
    assert await purge(shop, job_id) == 2
    with pytest.raises(NotFound):
        await jobs.get(shop.database, shop.workspace, job_id)
    with pytest.raises(NotFound):
        await history.of_job(shop.database, Scope(shop.workspace), job_id)
    archived = read_query("status:archived,active", JOBS, shop.clock.now())
    seen = await job_search.jobs(shop.database, Scope(shop.workspace), archived)
    assert [each.id for each in seen.items] == [other]
    assert await shop.tick(MINUTE) == 1  # the other one's
    while await job_status.finish_purges(shop.database, 2):
        pass
    assert shop.sql("SELECT DISTINCT job_id FROM foliot.runs") == [(other,)]
    assert shop.sql("SELECT id FROM foliot.jobs") == [(other,)]


async def test_a_purge_under_way_needs_force_and_then_refuses_the_result(shop: Shop) -> None:
    job_id = await shop.job()
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    with pytest.raises(Conflict, match="under way"):
        await purge(shop, job_id)
    await purge(shop, job_id, force=True)
    assert not await shop.finish(run)


@pytest.mark.parametrize("verb", [archive, purge])
async def test_a_job_that_others_depend_on_goes_only_when_they_are_detached(shop: Shop, verb: Any) -> None:
    upstream, dependent = await shop.job(), await shop.job(Manual(), name="report")
    depend(shop, dependent, upstream)
    with pytest.raises(Conflict, match="report"):
        await verb(shop, upstream)
    await verb(shop, upstream, detach=True)
    assert shop.sql("SELECT count(*) FROM foliot.dependencies") == [(0,)]


def depend(shop: Shop, job_id: JobId, upstream: JobId) -> None:
    shop.owner.execute(
        'INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode)'
        " VALUES (%s, %s, %s, 'success', 'trigger')",
        [shop.workspace, job_id, upstream],
    )
    shop.owner.execute("UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream])


async def test_an_edit_sets_what_a_job_depends_on_and_refuses_a_circle(shop: Shop) -> None:
    upstream, dependent = await shop.job(Manual()), await shop.job(Manual(), name="report")
    after = replace(definition(Manual(), name="report"), depends_on=(Edge(upstream),))
    await edit(shop, dependent, after)
    assert shop.sql("SELECT job_id, upstream_id FROM foliot.dependencies") == [(dependent, upstream)]
    assert shop.sql("SELECT job_id FROM foliot.timers WHERE has_dependents") == [(upstream,)]
    with pytest.raises(Invalid, match="wait for each other"):
        await edit(shop, upstream, replace(definition(Manual()), depends_on=(Edge(dependent),)))
    with pytest.raises(Invalid, match="no schedule of its own"):
        await edit(shop, dependent, replace(after, spec=definition(Cron("* * * * *")).spec))
    await edit(shop, dependent, definition(Manual(), name="report"))
    assert shop.sql("SELECT count(*) FROM foliot.dependencies") == [(0,)]


async def test_an_edit_names_calendars_that_are_there(shop: Shop) -> None:
    sundays = Calendar("sundays", CalendarKind.BLACKOUT, (Weekly(time(0), time(0), frozenset((6,))),))
    calendar_id = await calendars.create(shop.database, Scope(shop.workspace, ANA), sundays)
    job_id = await shop.job(Cron("0 12 * * *"))
    await edit(shop, job_id, definition(Cron("0 12 * * *"), calendars=(calendar_id,)))
    assert shop.sql("SELECT job_id, calendar_id FROM foliot.job_calendars") == [(job_id, calendar_id)]
    with pytest.raises(Invalid, match="no such calendar"):
        await edit(shop, job_id, definition(Cron("0 12 * * *"), calendars=(CalendarId(uuid4()),)))
    await edit(shop, job_id, definition(Cron("0 12 * * *")))
    assert shop.sql("SELECT count(*) FROM foliot.job_calendars") == [(0,)]


# Other workspaces


VERBS: dict[str, Callable[[Shop, WorkspaceId, JobId], Awaitable[object]]] = {
    "get": lambda shop, ws, job: jobs.get(shop.database, ws, job),
    "edit": lambda shop, ws, job: job_edits.edit(shop.database, Scope(ws, EVE), job, definition(name="x")),
    "pause": lambda shop, ws, job: job_status.pause(shop.database, Scope(ws, EVE), job),
    "resume": lambda shop, ws, job: job_status.resume(shop.database, Scope(ws, EVE), job),
    "disable": lambda shop, ws, job: job_status.disable(shop.database, Scope(ws, EVE), job),
    "archive": lambda shop, ws, job: job_status.archive(shop.database, Scope(ws, EVE), job),
    "purge": lambda shop, ws, job: job_status.purge(shop.database, Scope(ws, EVE), job, force=True),
    "run": lambda shop, ws, job: run_control.run_now(shop.database, Scope(ws, EVE), job),
    "skip": lambda shop, ws, job: run_control.skip_next(shop.database, Scope(ws, EVE), job, reason="x"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_job_is_as_little_there_as_one_that_never_was(shop: Shop, verb: str) -> None:
    job_id, globex = await shop.job(), WorkspaceId(uuid4())
    shop.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', clock_timestamp())",
        [globex],
    )
    with pytest.raises(NotFound) as foreign:
        await VERBS[verb](shop, globex, job_id)
    with pytest.raises(NotFound) as unknown:
        await VERBS[verb](shop, globex, JobId(uuid4()))
    assert (foreign.value.message, foreign.value.hint) == (unknown.value.message, unknown.value.hint)
    assert (shop.status(), shop.audited()) == ("active", ["job.created"])
