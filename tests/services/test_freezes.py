"""Freezes: what they hold, what they stop, and what becomes of it at their end."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.errors import Conflict, Invalid, NotFound
from foliot.domain.freeze import FreezePolicy, RunningPolicy
from foliot.domain.ids import FreezeId, WorkspaceId
from foliot.domain.outcomes import Cancelled
from foliot.domain.policy import Misfire, MisfireRule, Overlap, OverlapRule
from foliot.domain.schedule import Interval, IntervalMode
from foliot.services.runs.backfill import backfill
from foliot.services.runs.run_control import run_now
from foliot.services.scheduling.freezes import NewFreeze, hold, lift, page, preview, thaw, turn_on
from foliot.services.workers.limits import set_limit
from foliot.testing.fixtures import ADA, TEST
from tests.services.remote_hosts import H1, register_host, worker_principal
from tests.services.workspace_harness import BROKE, MANUAL, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ALL = NewFreeze("release", everything=True)


async def freeze(harness: WorkspaceHarness, new: NewFreeze = ALL) -> FreezeId:
    return await turn_on(harness.database, Scope(harness.workspace, ADA), new)


async def unfreeze(harness: WorkspaceHarness, freeze_id: FreezeId) -> None:
    await lift(harness.database, Scope(harness.workspace, ADA), freeze_id)


async def test_runs_that_are_ready_hold_and_go_on_after_it(harness: WorkspaceHarness) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    held = await freeze(harness)
    assert harness.waits() == [(beat, "freeze")]
    assert await harness.claim() == []
    assert harness.timer(beat, "live, status") == (1, "active")
    harness.clock.advance(MINUTE)
    await unfreeze(harness, held)
    assert harness.waits() == []
    assert await harness.run_once() == [beat]


@pytest.mark.parametrize(
    "after, records",
    [
        (FreezePolicy.SKIP, [("skipped", "frozen", None)] * 3),
        (FreezePolicy.LATEST, [("skipped", "frozen", 2), (None, None, None)]),
        (FreezePolicy.ALL, [(None, None, None)] * 3),
    ],
)
async def test_planned_times_are_skipped_or_held_as_it_says(
    harness: WorkspaceHarness, after: FreezePolicy, records: list[tuple[str | None, str | None, int | None]]
) -> None:
    beat = await harness.job("beat", Interval(HOUR), overlap=Overlap(OverlapRule.QUEUE))
    end_at = harness.clock.now() + 200 * MINUTE
    await freeze(harness, NewFreeze("release", everything=True, end_at=end_at, after=after))
    for _ in range(3):
        harness.clock.advance(HOUR)
        await harness.tick()
    assert len(harness.runs(beat)) == (3 if after is FreezePolicy.SKIP else 0)
    harness.clock.set(end_at)
    await harness.tick()
    assert harness.runs(beat, "status, skip_reason, count") == records


async def test_a_freeze_without_an_end_that_is_lifted_lets_its_timers_go_at_once(
    harness: WorkspaceHarness,
) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    idle = await harness.job("idle", MANUAL)
    held = await freeze(harness, NewFreeze("release", everything=True, after=FreezePolicy.LATEST))
    harness.clock.advance(2 * HOUR + MINUTE)
    await harness.tick()
    assert harness.timer(beat, "due_at = 'infinity'") == (True,)
    await unfreeze(harness, held)
    [due_at] = harness.timer(beat, "due_at")
    assert due_at <= harness.clock.now()
    assert harness.timer(idle, "due_at = 'infinity'") == (True,)
    await harness.tick()
    assert harness.runs(beat, "status, skip_reason") == [("skipped", "frozen"), (None, None)]
    assert await harness.run_once() == [beat]
    assert (await thaw(harness.database)).timers == 0


async def test_a_freeze_lifted_early_lets_its_timers_go_at_once(harness: WorkspaceHarness) -> None:
    chained = await harness.job("chained", Interval(HOUR, mode=IntervalMode.FIXED_DELAY))
    end_at = harness.clock.now() + timedelta(days=7)
    held = await freeze(
        harness, NewFreeze("release", everything=True, end_at=end_at, after=FreezePolicy.LATEST)
    )
    harness.clock.advance(HOUR)
    await harness.tick()
    assert harness.timer(chained, "due_at") == (end_at,)
    harness.clock.advance(HOUR)
    await unfreeze(harness, held)
    await harness.tick()
    assert await harness.run_once() == [chained]


async def test_a_retry_holds_and_keeps_its_time(harness: WorkspaceHarness) -> None:
    daily = await harness.job("daily", Interval(timedelta(days=1)))
    harness.clock.advance(timedelta(days=1))
    await harness.tick()
    [mine] = await harness.claim()
    held = await freeze(harness)
    await harness.report(mine, BROKE)
    assert harness.waits() == [(daily, "freeze")]
    harness.clock.advance(MINUTE)
    await unfreeze(harness, held)
    assert await harness.claim() == []
    harness.clock.advance(4 * MINUTE)
    assert await harness.run_once() == [daily]


async def test_what_runs_is_finished_or_stopped_as_it_says(harness: WorkspaceHarness) -> None:
    for running, asked in ((RunningPolicy.DRAIN, 0), (RunningPolicy.STOP, 1)):
        await harness.run_manually(await harness.job(running.value, MANUAL))
        [mine] = await harness.claim()
        harness.clock.advance(MINUTE)
        await freeze(harness, NewFreeze("release", jobs=frozenset([mine.job_id]), running=running))
        found = harness.owner.execute("SELECT count(cancel_requested_at) FROM foliot.leases").fetchone()
        assert found == (asked,)
        await harness.report(mine, Cancelled() if asked else None)


async def test_only_what_its_scope_names_is_held(harness: WorkspaceHarness) -> None:
    tagged = await harness.job("tagged", Interval(HOUR), tags=("billing", "x"))
    queued = await harness.job("queued", Interval(HOUR), queue="mail")
    named = await harness.job("named", Interval(HOUR))
    free = await harness.job("free", Interval(HOUR), tags=("other",))
    harness.clock.advance(HOUR)
    await harness.tick()
    await freeze(
        harness,
        NewFreeze(
            "release",
            jobs=frozenset([named]),
            tags=frozenset(["billing"]),
            queues=frozenset(["mail"]),
            after=FreezePolicy.LATEST,
        ),
    )
    assert sorted(job for job, _ in harness.waits()) == sorted([tagged, queued, named])
    assert await harness.run_once() == [free]
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await harness.run_once() == [free]


async def test_one_that_begins_later_holds_from_then_on(harness: WorkspaceHarness) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    start_at = harness.clock.now() + MINUTE
    await freeze(
        harness, NewFreeze("release", everything=True, start_at=start_at, end_at=start_at + 10 * MINUTE)
    )
    assert await hold(harness.database) == 0
    assert harness.ready() == [beat]
    harness.clock.advance(MINUTE)
    assert await hold(harness.database) == 1
    assert await hold(harness.database) == 0
    assert (await thaw(harness.database)).runs == 0
    harness.clock.advance(10 * MINUTE)
    assert (await thaw(harness.database)).runs == 1
    assert await harness.run_once() == [beat]


async def test_a_run_asked_for_during_a_freeze_is_left_alone(harness: WorkspaceHarness) -> None:
    job = await harness.job("by hand", MANUAL)
    await harness.run_manually(job)
    harness.clock.advance(MINUTE)
    await freeze(harness, NewFreeze("release", everything=True, running=RunningPolicy.STOP))
    assert harness.waits() == [(job, "freeze")]
    harness.clock.advance(MINUTE)
    await harness.run_manually(job)
    assert await hold(harness.database) == 0
    [mine] = await harness.claim()
    assert await hold(harness.database) == 0
    await harness.report(mine, BROKE)
    assert harness.ready() == [job]


async def test_dependents_and_gates_hold_too(harness: WorkspaceHarness) -> None:
    sync = await harness.job("sync", MANUAL)
    after = await harness.job("after", MANUAL, [Edge(sync)])
    gated = await harness.job("gated", Interval(HOUR), [Edge(sync, mode=EdgeMode.GATE)])
    harness.clock.advance(HOUR)
    await harness.run_manually(sync)
    await harness.tick()
    [upstream] = await harness.claim()
    harness.clock.advance(MINUTE)
    held = await freeze(harness, NewFreeze("release", jobs=frozenset([after, gated])))
    await harness.report(upstream)
    assert sorted(harness.waits()) == sorted([(after, "freeze"), (gated, "freeze")])
    harness.clock.advance(MINUTE)
    await unfreeze(harness, held)
    assert sorted(await harness.run_once()) == sorted([after, gated])


async def test_those_in_line_at_a_cap_do_not_slip_through(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    for n in range(3):
        await harness.job(f"job {n}", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    [mine] = await harness.claim()
    held = await freeze(harness)
    await harness.report(mine)
    assert await harness.claim() == []
    assert {waits for _, waits in harness.waits()} == {"freeze"}
    harness.clock.advance(MINUTE)
    await unfreeze(harness, held)
    assert len(await harness.claim()) == 1


async def test_held_runs_leave_at_the_freezes_rate(harness: WorkspaceHarness) -> None:
    for n in range(5):
        await harness.job(f"job {n}", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    end_at = harness.clock.now() + MINUTE
    await freeze(
        harness, NewFreeze("release", everything=True, end_at=end_at, after=FreezePolicy.ALL, per_minute=2)
    )
    harness.clock.set(end_at)
    while (await thaw(harness.database, limit=2)).is_full:
        pass
    leaves = harness.owner.execute("SELECT available_at FROM foliot.ready ORDER BY available_at").fetchall()
    assert leaves == [(end_at + n * timedelta(seconds=30),) for n in range(5)]


async def test_two_freezes_hold_until_the_last_is_over(harness: WorkspaceHarness) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    first, second = await freeze(harness), await freeze(harness, NewFreeze("more", jobs=frozenset([beat])))
    harness.clock.advance(MINUTE)
    await unfreeze(harness, first)
    assert harness.waits() == [(beat, "freeze")]
    await unfreeze(harness, second)
    assert await harness.run_once() == [beat]


async def test_lists_show_what_is_on_and_on_request_what_was(harness: WorkspaceHarness) -> None:
    start_at = harness.clock.now() + HOUR
    first, later = (
        await freeze(harness),
        await freeze(harness, NewFreeze("next week", everything=True, start_at=start_at)),
    )
    harness.clock.advance(MINUTE)
    await unfreeze(harness, first)
    assert [row.scoped.freeze.id for row in await page(harness.database, harness.workspace)] == [later]
    was = await page(harness.database, harness.workspace, ended=True)
    assert {row.scoped.freeze.id: (row.created_by, row.lifted_by) for row in was} == {
        first: ("ada", "ada"),
        later: ("ada", None),
    }
    with pytest.raises(Conflict, match="over already"):
        await unfreeze(harness, first)
    await unfreeze(harness, later)
    assert await page(harness.database, harness.workspace) == []
    with pytest.raises(NotFound):
        await unfreeze(harness, FreezeId(uuid4()))


async def test_a_preview_counts_what_it_would_hold(harness: WorkspaceHarness) -> None:
    await harness.job("hourly", Interval(HOUR), tags=("a",))
    await harness.job("minutely", Interval(MINUTE), tags=("b",))
    await harness.job("idle", MANUAL, tags=("a",))
    harness.clock.advance(MINUTE)
    await harness.tick()
    found = await preview(harness.database, harness.workspace, NewFreeze("?", tags=frozenset(["a"])))
    assert (found.jobs, found.planned_times, found.is_exact, found.ready) == (2, 24, True, 0)
    end_at = harness.clock.now() + timedelta(days=30)
    found = await preview(harness.database, harness.workspace, NewFreeze("?", everything=True, end_at=end_at))
    assert (found.jobs, found.planned_times, found.is_exact, found.ready) == (3, 10_000, False, 1)
    assert await page(harness.database, harness.workspace, ended=True) == []


@pytest.mark.parametrize(
    "new, words",
    [
        (NewFreeze("nothing"), "names"),
        (NewFreeze("both", everything=True, tags=frozenset(["a"])), "names"),
    ],
)
async def test_a_freeze_of_nothing_in_particular_is_refused(
    harness: WorkspaceHarness, new: NewFreeze, words: str
) -> None:
    with pytest.raises(Invalid, match=words):
        await freeze(harness, new)
    past = harness.clock.now() - MINUTE
    with pytest.raises(Invalid, match="now or later"):
        await freeze(harness, NewFreeze("late", everything=True, start_at=past))
    with pytest.raises(Invalid, match="ends after"):
        await freeze(harness, NewFreeze("late", everything=True, end_at=past))


async def test_a_backfill_asked_for_during_a_freeze_waits_for_its_end(harness: WorkspaceHarness) -> None:
    start = harness.clock.now()
    beat = await harness.job("beat", Interval(HOUR), misfire=Misfire(MisfireRule.SKIP))
    harness.clock.advance(3 * HOUR + 2 * MINUTE)
    await harness.tick()
    held = await freeze(harness)
    harness.clock.advance(MINUTE)
    made = await backfill(
        harness.database,
        Scope(harness.workspace, ADA),
        beat,
        start,
        harness.clock.now(),
        dry_run=False,
        skipped=True,
    )
    assert made.count == 3
    await hold(harness.database)
    assert await harness.claim() == []
    await unfreeze(harness, held)
    for _ in range(3):
        assert await harness.run_once() == [beat]


async def test_nothing_starts_between_the_start_of_a_freeze_and_the_sweeper(
    harness: WorkspaceHarness,
) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    await freeze(harness, NewFreeze("release", everything=True, start_at=harness.clock.now() + HOUR + MINUTE))
    harness.clock.advance(HOUR)
    await harness.tick()
    harness.clock.advance(MINUTE)
    assert await harness.claim() == []
    assert await hold(harness.database) == 1
    assert harness.waits() == [(beat, "freeze")]


async def test_a_freeze_ahead_of_its_start_holds_nothing(harness: WorkspaceHarness) -> None:
    beat = await harness.job("beat", Interval(HOUR))
    await freeze(harness, NewFreeze("release", everything=True, start_at=harness.clock.now() + 2 * HOUR))
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await harness.run_once() == [beat]


async def test_jobs_that_a_freeze_does_not_cover_go_on_once_it_has_begun(harness: WorkspaceHarness) -> None:
    await harness.job("beat", Interval(HOUR))
    other = await harness.job("other", Interval(HOUR), tags=("calm",))
    await harness.job("third", Interval(HOUR), tags=("late",))
    some = NewFreeze("release", tags=frozenset({"late"}), start_at=harness.clock.now() + HOUR + MINUTE)
    await freeze(harness, some)
    harness.clock.advance(HOUR)
    await harness.tick()
    harness.clock.advance(MINUTE)
    await hold(harness.database)
    assert other in await harness.run_once()
    assert [waits for _, waits in harness.waits()] == ["freeze"]


async def test_a_freeze_that_stops_runs_leaves_those_of_other_workspaces_alone(
    harness: WorkspaceHarness,
) -> None:
    other_id = WorkspaceId(uuid4())
    harness.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'other', 'Other', now())",
        [other_id],
    )
    other = WorkspaceHarness(harness.database, harness.clock, other_id, harness.owner)
    for each in (harness, other):
        await each.run_manually(await each.job("busy", MANUAL))
    assert len(await harness.claim()) == 2
    harness.clock.advance(MINUTE)
    await freeze(harness, NewFreeze("release", everything=True, running=RunningPolicy.STOP))
    await hold(harness.database)
    stopped = harness.owner.execute(
        "SELECT workspace_id FROM foliot.leases WHERE cancel_requested_at IS NOT NULL"
    ).fetchall()
    assert stopped == [(harness.workspace,)]


async def test_no_worker_of_one_workspace_starts_anything_between_the_start_of_a_freeze_and_the_sweeper(
    harness: WorkspaceHarness,
) -> None:
    h1 = await register_host(harness.database, worker_principal(harness.workspace), "h1", lease=HOUR)
    job = await harness.job("restart", MANUAL, target=H1)
    await run_now(harness.database, Scope(harness.workspace, TEST), job)
    start_at = harness.clock.now() + MINUTE
    await freeze(harness, NewFreeze("release", everything=True, start_at=start_at, end_at=start_at + MINUTE))
    for at in (start_at, start_at + timedelta(seconds=1)):
        harness.clock.set(at)
        assert await h1.claim() == []
    await hold(harness.database)
    harness.clock.set(start_at + MINUTE)
    await thaw(harness.database)
    assert len(await h1.claim()) == 1
