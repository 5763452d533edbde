"""A tick meets the verbs of people. It never waits for them: what somebody holds, it passes by and finds at the next look."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.schedule import Cron
from foliot.services.jobs.job_edits import edit
from foliot.services.jobs.job_status import archive, pause, purge, resume
from foliot.services.runs.backfill import backfill
from foliot.services.runs.run_control import run_now, skip_next
from foliot.services.scheduling.tick import TickResult, tick
from foliot.testing.fixtures import BEN
from tests.race.hands import Hands
from tests.services.shop import MINUTE, Shop, definition

pytestmark = pytest.mark.anyio
NOTHING = TickResult()
ONE = TickResult(1, 1)
SECOND = timedelta(seconds=1)


async def test_of_two_ticks_one_fires_and_the_other_passes_by(hands: Hands, shop: Shop) -> None:
    await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left), at="runs") as first:
        assert await tick(hands.right) == NOTHING
    assert await first == ONE
    assert await tick(hands.right) == NOTHING
    assert shop.runs() == [("schedule", "ready", None)]


async def test_a_second_tick_takes_what_the_first_has_not_in_hand(hands: Hands, shop: Shop) -> None:
    for _ in range(3):
        await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left, limit=1), at="runs") as first:
        second = await hands.behind(tick(hands.right))
    assert (await first, await second) == (ONE, TickResult(2, 2))


async def test_an_edit_waits_for_a_tick_and_takes_over_after_it(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    shop.clock.advance(MINUTE + SECOND)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(
            edit(hands.right, Scope(shop.workspace, BEN), job_id, definition(Cron("0 0 * * *"), queue="slow"))
        )
    assert await first == ONE
    assert (await second).job.next_at == shop.clock.now().replace(hour=0, minute=0, second=0) + timedelta(
        days=1
    )
    assert shop.sql("SELECT schedule_rev FROM foliot.runs") == [(1,)]
    assert shop.sql("SELECT queue FROM foliot.ready") == [("slow",)]


async def test_a_tick_passes_by_an_edit_which_records_what_was_due(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    shop.clock.advance(MINUTE + SECOND)
    new = definition(Cron("*/5 * * * *"))
    async with hands.midway(edit(hands.left, Scope(shop.workspace, BEN), job_id, new), at="audit") as first:
        assert await tick(hands.right) == NOTHING
    await first
    assert await tick(hands.right) == NOTHING
    shop.clock.advance(4 * MINUTE)
    assert await tick(hands.right) == ONE
    assert shop.sql("SELECT schedule_rev, count(*) FROM foliot.runs GROUP BY 1 ORDER BY 1") == [
        (1, 1),
        (2, 1),
    ]


async def test_a_pause_waits_for_a_tick_and_holds_its_run_back(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(pause(hands.right, Scope(shop.workspace, BEN), job_id))
    assert await first == ONE
    await second
    assert (shop.status(), shop.runs()) == ("paused", [("schedule", "waiting", None)])
    assert shop.timer("due_at = 'infinity'", "next_at") == (True, None)


async def test_a_tick_passes_by_a_pause_and_fires_nothing_afterwards(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(pause(hands.left, Scope(shop.workspace, BEN), job_id), at="audit") as first:
        assert await tick(hands.right) == NOTHING
    await first
    assert await tick(hands.right) == NOTHING
    shop.clock.advance(MINUTE)
    await resume(hands.left, Scope(shop.workspace, BEN), job_id)
    assert shop.sql("SELECT skip_reason, count FROM foliot.runs") == [("paused", 2)]


async def test_an_archive_waits_for_a_tick_and_cancels_its_run(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(archive(hands.right, Scope(shop.workspace, BEN), job_id))
    await first
    await second
    assert (shop.status(), shop.runs()) == ("archived", [("schedule", "cancelled", None)])


async def test_a_tick_passes_by_an_archive_and_fires_nothing_afterwards(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(archive(hands.left, Scope(shop.workspace, BEN), job_id), at="audit") as first:
        assert await tick(hands.right) == NOTHING
    await first
    assert await tick(hands.right) == NOTHING
    assert shop.runs() == []


async def test_a_purge_waits_for_a_tick_and_takes_its_run_along(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(purge(hands.right, Scope(shop.workspace, BEN), job_id))
    assert (await first, await second) == (ONE, 1)
    assert shop.sql("SELECT count(*) FROM foliot.ready") == [(0,)]


async def test_a_run_by_hand_waits_for_a_tick_and_stands_behind_its_run(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(run_now(hands.right, Scope(shop.workspace, BEN), job_id))
    await first
    await second
    assert shop.runs() == [("schedule", "ready", None), ("manual", "waiting", None)]


async def test_a_tick_passes_by_a_run_by_hand_and_finds_it_live(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    async with hands.midway(run_now(hands.left, Scope(shop.workspace, BEN), job_id), at="audit") as first:
        assert await tick(hands.right) == NOTHING
    await first
    assert await tick(hands.right) == ONE
    assert shop.runs() == [("manual", "ready", None), ("schedule", "skipped", "overlap")]


async def test_a_tick_passes_by_a_resume_and_fires_none_of_what_it_recorded(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    await pause(hands.left, Scope(shop.workspace, BEN), job_id)
    shop.clock.advance(10 * MINUTE)
    async with hands.midway(resume(hands.left, Scope(shop.workspace, BEN), job_id), at="audit") as first:
        assert await tick(hands.right) == NOTHING
    await first
    assert await tick(hands.right) == NOTHING
    shop.clock.advance(MINUTE)
    assert await tick(hands.right) == ONE
    assert shop.sql("SELECT skip_reason, count FROM foliot.runs ORDER BY number") == [
        ("paused", 10),
        (None, None),
    ]


async def test_a_skip_of_the_next_time_waits_for_a_tick_and_means_the_one_after(
    hands: Hands, shop: Shop
) -> None:
    job_id = await shop.job(rule="queue")
    shop.clock.advance(MINUTE)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(
            skip_next(hands.right, Scope(shop.workspace, BEN), job_id, reason="holiday")
        )
    await first
    assert (await second).planned_at == shop.clock.now() + MINUTE
    shop.clock.advance(MINUTE)
    await tick(hands.left)
    assert shop.runs() == [("schedule", "ready", None), ("schedule", "skipped", "operator")]


async def test_a_tick_passes_by_a_skip_of_the_next_time_and_obeys_it(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    shop.clock.advance(MINUTE)
    skip = skip_next(hands.left, Scope(shop.workspace, BEN), job_id, reason="holiday")
    async with hands.midway(skip, at="audit") as first:
        assert await tick(hands.right) == NOTHING
    await first
    assert await tick(hands.right) == ONE
    assert shop.runs() == [("schedule", "skipped", "operator")]


async def test_a_backfill_waits_for_a_tick_and_leaves_its_time_alone(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    start = shop.clock.now() - 2 * MINUTE
    now = shop.clock.advance(MINUTE + SECOND)
    async with hands.midway(tick(hands.left), at="runs") as first:
        second = await hands.behind(
            backfill(hands.right, Scope(shop.workspace, BEN), job_id, start, now, dry_run=False)
        )
    await first
    assert (await second).count == 3
    assert [trigger for trigger, _, _ in shop.runs()] == ["schedule", "backfill", "backfill", "backfill"]
    assert shop.sql("SELECT count(DISTINCT planned_for) FROM foliot.runs") == [(4,)]
