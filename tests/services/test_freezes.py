"""Freezes: what they hold, what they stop, and what becomes of it at their end."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.errors import Conflict, Invalid, NotFound
from foliot.domain.freeze import FreezePolicy, RunningPolicy
from foliot.domain.ids import FreezeId
from foliot.domain.outcomes import Cancelled
from foliot.domain.policy import Misfire, MisfireRule, Overlap, OverlapRule
from foliot.domain.schedule import Interval, IntervalMode
from foliot.services.runs.backfill import backfill
from foliot.services.scheduling.freezes import NewFreeze, hold, lift, page, preview, thaw, turn_on
from foliot.services.workers.limits import set_limit
from foliot.testing.fixtures import ADA, TEST
from tests.services.staging import BROKE, MANUAL, Stage

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ALL = NewFreeze("release", everything=True)


async def freeze(stage: Stage, new: NewFreeze = ALL) -> FreezeId:
    return await turn_on(stage.database, Scope(stage.workspace, ADA), new)


async def unfreeze(stage: Stage, freeze_id: FreezeId) -> None:
    await lift(stage.database, Scope(stage.workspace, ADA), freeze_id)


async def test_runs_that_are_ready_hold_and_go_on_after_it(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    held = await freeze(stage)
    assert stage.waits() == [(beat, "freeze")]
    assert await stage.claim() == []
    assert stage.timer(beat, "live, status") == (1, "active")
    stage.clock.advance(MINUTE)
    await unfreeze(stage, held)
    assert stage.waits() == []
    assert await stage.run_once() == [beat]


@pytest.mark.parametrize(
    "after, records",
    [
        (FreezePolicy.SKIP, [("skipped", "frozen", None)] * 3),
        (FreezePolicy.LATEST, [("skipped", "frozen", 2), (None, None, None)]),
        (FreezePolicy.ALL, [(None, None, None)] * 3),
    ],
)
async def test_planned_times_are_skipped_or_held_as_it_says(
    stage: Stage, after: FreezePolicy, records: list[tuple[str | None, str | None, int | None]]
) -> None:
    beat = await stage.job("beat", Interval(HOUR), overlap=Overlap(OverlapRule.QUEUE))
    end_at = stage.clock.now() + 200 * MINUTE
    await freeze(stage, NewFreeze("release", everything=True, end_at=end_at, after=after))
    for _ in range(3):
        stage.clock.advance(HOUR)
        await stage.tick()
    assert len(stage.runs(beat)) == (3 if after is FreezePolicy.SKIP else 0)
    stage.clock.set(end_at)
    await stage.tick()
    assert stage.runs(beat, "status, skip_reason, count") == records


async def test_a_freeze_without_an_end_that_is_lifted_lets_its_timers_go_at_once(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    idle = await stage.job("idle", MANUAL)
    held = await freeze(stage, NewFreeze("release", everything=True, after=FreezePolicy.LATEST))
    stage.clock.advance(2 * HOUR + MINUTE)
    await stage.tick()
    assert stage.timer(beat, "due_at = 'infinity'") == (True,)
    await unfreeze(stage, held)
    [due_at] = stage.timer(beat, "due_at")
    assert due_at <= stage.clock.now()
    assert stage.timer(idle, "due_at = 'infinity'") == (True,)
    await stage.tick()
    assert stage.runs(beat, "status, skip_reason") == [("skipped", "frozen"), (None, None)]
    assert await stage.run_once() == [beat]
    assert (await thaw(stage.database)).timers == 0


async def test_a_freeze_lifted_early_lets_its_timers_go_at_once(stage: Stage) -> None:
    chained = await stage.job("chained", Interval(HOUR, mode=IntervalMode.FIXED_DELAY))
    end_at = stage.clock.now() + timedelta(days=7)
    held = await freeze(
        stage, NewFreeze("release", everything=True, end_at=end_at, after=FreezePolicy.LATEST)
    )
    stage.clock.advance(HOUR)
    await stage.tick()
    assert stage.timer(chained, "due_at") == (end_at,)
    stage.clock.advance(HOUR)
    await unfreeze(stage, held)
    await stage.tick()
    assert await stage.run_once() == [chained]


async def test_a_retry_holds_and_keeps_its_time(stage: Stage) -> None:
    daily = await stage.job("daily", Interval(timedelta(days=1)))
    stage.clock.advance(timedelta(days=1))
    await stage.tick()
    [mine] = await stage.claim()
    held = await freeze(stage)
    await stage.report(mine, BROKE)
    assert stage.waits() == [(daily, "freeze")]
    stage.clock.advance(MINUTE)
    await unfreeze(stage, held)
    assert await stage.claim() == []
    stage.clock.advance(4 * MINUTE)
    assert await stage.run_once() == [daily]


async def test_what_runs_is_finished_or_stopped_as_it_says(stage: Stage) -> None:
    for running, asked in ((RunningPolicy.DRAIN, 0), (RunningPolicy.STOP, 1)):
        await stage.by_hand(await stage.job(running.value, MANUAL))
        [mine] = await stage.claim()
        stage.clock.advance(MINUTE)
        await freeze(stage, NewFreeze("release", jobs=frozenset([mine.job_id]), running=running))
        found = stage.owner.execute("SELECT count(cancel_requested_at) FROM foliot.leases").fetchone()
        assert found == (asked,)
        await stage.report(mine, Cancelled() if asked else None)


async def test_only_what_its_scope_names_is_held(stage: Stage) -> None:
    tagged = await stage.job("tagged", Interval(HOUR), tags=("billing", "x"))
    queued = await stage.job("queued", Interval(HOUR), queue="mail")
    named = await stage.job("named", Interval(HOUR))
    free = await stage.job("free", Interval(HOUR), tags=("other",))
    stage.clock.advance(HOUR)
    await stage.tick()
    await freeze(
        stage,
        NewFreeze(
            "release",
            jobs=frozenset([named]),
            tags=frozenset(["billing"]),
            queues=frozenset(["mail"]),
            after=FreezePolicy.LATEST,
        ),
    )
    assert sorted(job for job, _ in stage.waits()) == sorted([tagged, queued, named])
    assert await stage.run_once() == [free]
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await stage.run_once() == [free]


async def test_one_that_begins_later_holds_from_then_on(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    start_at = stage.clock.now() + MINUTE
    await freeze(
        stage, NewFreeze("release", everything=True, start_at=start_at, end_at=start_at + 10 * MINUTE)
    )
    assert await hold(stage.database) == 0
    assert stage.ready() == [beat]
    stage.clock.advance(MINUTE)
    assert await hold(stage.database) == 1
    assert await hold(stage.database) == 0
    assert (await thaw(stage.database)).runs == 0
    stage.clock.advance(10 * MINUTE)
    assert (await thaw(stage.database)).runs == 1
    assert await stage.run_once() == [beat]


async def test_a_run_asked_for_during_a_freeze_is_left_alone(stage: Stage) -> None:
    job = await stage.job("by hand", MANUAL)
    await stage.by_hand(job)
    stage.clock.advance(MINUTE)
    await freeze(stage, NewFreeze("release", everything=True, running=RunningPolicy.STOP))
    assert stage.waits() == [(job, "freeze")]
    stage.clock.advance(MINUTE)
    await stage.by_hand(job)
    assert await hold(stage.database) == 0
    [mine] = await stage.claim()
    assert await hold(stage.database) == 0
    await stage.report(mine, BROKE)
    assert stage.ready() == [job]


async def test_dependents_and_gates_hold_too(stage: Stage) -> None:
    sync = await stage.job("sync", MANUAL)
    after = await stage.job("after", MANUAL, [Edge(sync)])
    gated = await stage.job("gated", Interval(HOUR), [Edge(sync, mode=EdgeMode.GATE)])
    stage.clock.advance(HOUR)
    await stage.by_hand(sync)
    await stage.tick()
    [upstream] = await stage.claim()
    stage.clock.advance(MINUTE)
    held = await freeze(stage, NewFreeze("release", jobs=frozenset([after, gated])))
    await stage.report(upstream)
    assert sorted(stage.waits()) == sorted([(after, "freeze"), (gated, "freeze")])
    stage.clock.advance(MINUTE)
    await unfreeze(stage, held)
    assert sorted(await stage.run_once()) == sorted([after, gated])


async def test_those_in_line_at_a_cap_do_not_slip_through(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 1)
    for n in range(3):
        await stage.job(f"job {n}", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    [mine] = await stage.claim()
    held = await freeze(stage)
    await stage.report(mine)
    assert await stage.claim() == []
    assert {waits for _, waits in stage.waits()} == {"freeze"}
    stage.clock.advance(MINUTE)
    await unfreeze(stage, held)
    assert len(await stage.claim()) == 1


async def test_held_runs_leave_at_the_freezes_rate(stage: Stage) -> None:
    for n in range(5):
        await stage.job(f"job {n}", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    end_at = stage.clock.now() + MINUTE
    await freeze(
        stage, NewFreeze("release", everything=True, end_at=end_at, after=FreezePolicy.ALL, per_minute=2)
    )
    stage.clock.set(end_at)
    while (await thaw(stage.database, limit=2)).is_full:
        pass
    leaves = stage.owner.execute("SELECT available_at FROM foliot.ready ORDER BY available_at").fetchall()
    assert leaves == [(end_at + n * timedelta(seconds=30),) for n in range(5)]


async def test_two_freezes_hold_until_the_last_is_over(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    first, second = await freeze(stage), await freeze(stage, NewFreeze("more", jobs=frozenset([beat])))
    stage.clock.advance(MINUTE)
    await unfreeze(stage, first)
    assert stage.waits() == [(beat, "freeze")]
    await unfreeze(stage, second)
    assert await stage.run_once() == [beat]


async def test_lists_show_what_is_on_and_on_request_what_was(stage: Stage) -> None:
    start_at = stage.clock.now() + HOUR
    first, later = (
        await freeze(stage),
        await freeze(stage, NewFreeze("next week", everything=True, start_at=start_at)),
    )
    stage.clock.advance(MINUTE)
    await unfreeze(stage, first)
    assert [row.scoped.freeze.id for row in await page(stage.database, stage.workspace)] == [later]
    was = await page(stage.database, stage.workspace, ended=True)
    assert {row.scoped.freeze.id: (row.created_by, row.lifted_by) for row in was} == {
        first: ("ada", "ada"),
        later: ("ada", None),
    }
    with pytest.raises(Conflict, match="over already"):
        await unfreeze(stage, first)
    await unfreeze(stage, later)
    assert await page(stage.database, stage.workspace) == []
    with pytest.raises(NotFound):
        await unfreeze(stage, FreezeId(uuid4()))


async def test_a_preview_counts_what_it_would_hold(stage: Stage) -> None:
    await stage.job("hourly", Interval(HOUR), tags=("a",))
    await stage.job("minutely", Interval(MINUTE), tags=("b",))
    await stage.job("idle", MANUAL, tags=("a",))
    stage.clock.advance(MINUTE)
    await stage.tick()
    found = await preview(stage.database, stage.workspace, NewFreeze("?", tags=frozenset(["a"])))
    assert (found.jobs, found.planned_times, found.is_exact, found.ready) == (2, 24, True, 0)
    end_at = stage.clock.now() + timedelta(days=30)
    found = await preview(stage.database, stage.workspace, NewFreeze("?", everything=True, end_at=end_at))
    assert (found.jobs, found.planned_times, found.is_exact, found.ready) == (3, 10_000, False, 1)
    assert await page(stage.database, stage.workspace, ended=True) == []


@pytest.mark.parametrize(
    "new, words",
    [
        (NewFreeze("nothing"), "names"),
        (NewFreeze("both", everything=True, tags=frozenset(["a"])), "names"),
    ],
)
async def test_a_freeze_of_nothing_in_particular_is_refused(stage: Stage, new: NewFreeze, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        await freeze(stage, new)
    past = stage.clock.now() - MINUTE
    with pytest.raises(Invalid, match="now or later"):
        await freeze(stage, NewFreeze("late", everything=True, start_at=past))
    with pytest.raises(Invalid, match="ends after"):
        await freeze(stage, NewFreeze("late", everything=True, end_at=past))


async def test_a_backfill_asked_for_during_a_freeze_waits_for_its_end(stage: Stage) -> None:
    start = stage.clock.now()
    beat = await stage.job("beat", Interval(HOUR), misfire=Misfire(MisfireRule.SKIP))
    stage.clock.advance(3 * HOUR + 2 * MINUTE)
    await stage.tick()
    held = await freeze(stage)
    stage.clock.advance(MINUTE)
    made = await backfill(
        stage.database,
        Scope(stage.workspace, ADA),
        beat,
        start,
        stage.clock.now(),
        dry_run=False,
        skipped=True,
    )
    assert made.count == 3
    await hold(stage.database)
    assert await stage.claim() == []
    await unfreeze(stage, held)
    for _ in range(3):
        assert await stage.run_once() == [beat]


async def test_nothing_starts_between_the_start_of_a_freeze_and_the_sweeper(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    await freeze(stage, NewFreeze("release", everything=True, start_at=stage.clock.now() + HOUR + MINUTE))
    stage.clock.advance(HOUR)
    await stage.tick()
    stage.clock.advance(MINUTE)
    assert await stage.claim() == []
    assert await hold(stage.database) == 1
    assert stage.waits() == [(beat, "freeze")]


async def test_a_freeze_ahead_of_its_start_holds_nothing(stage: Stage) -> None:
    beat = await stage.job("beat", Interval(HOUR))
    await freeze(stage, NewFreeze("release", everything=True, start_at=stage.clock.now() + 2 * HOUR))
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await stage.run_once() == [beat]


async def test_jobs_that_a_freeze_does_not_cover_go_on_once_it_has_begun(stage: Stage) -> None:
    await stage.job("beat", Interval(HOUR))
    other = await stage.job("other", Interval(HOUR), tags=("calm",))
    await stage.job("third", Interval(HOUR), tags=("late",))
    some = NewFreeze("release", tags=frozenset({"late"}), start_at=stage.clock.now() + HOUR + MINUTE)
    await freeze(stage, some)
    stage.clock.advance(HOUR)
    await stage.tick()
    stage.clock.advance(MINUTE)
    await hold(stage.database)
    assert other in await stage.run_once()
    assert [waits for _, waits in stage.waits()] == ["freeze"]
