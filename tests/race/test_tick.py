"""A tick meets the verbs of people. It never waits for them: what a verb holds, it passes by and finds at the next look."""

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
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio
NOTHING = TickResult()
ONE = TickResult(1, 1)
SECOND = timedelta(seconds=1)


@pytest.mark.requirement("S2-3", "S4-17", "X-4")
async def test_of_two_ticks_one_fires_and_the_other_passes_by(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        assert await tick(nodes.right) == NOTHING
    assert await first == ONE
    assert await tick(nodes.right) == NOTHING
    assert driver.runs() == [("schedule", "ready", None)]


async def test_a_second_tick_takes_what_the_first_has_not_in_hand(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    for _ in range(3):
        await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left, limit=1), at="runs") as first:
        second = await nodes.start_blocked(tick(nodes.right))
    assert (await first, await second) == (ONE, TickResult(2, 2))


@pytest.mark.requirement("S0-16")
async def test_an_edit_waits_for_a_tick_and_takes_over_after_it(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    driver.clock.advance(MINUTE + SECOND)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(
            edit(
                nodes.right, Scope(driver.workspace, BEN), job_id, definition(Cron("0 0 * * *"), queue="slow")
            )
        )
    assert await first == ONE
    assert (await second).job.next_at == driver.clock.now().replace(hour=0, minute=0, second=0) + timedelta(
        days=1
    )
    assert driver.sql("SELECT schedule_rev FROM foliot.runs") == [(1,)]
    assert driver.sql("SELECT queue FROM foliot.ready") == [("slow",)]


async def test_a_tick_passes_by_an_edit_which_records_what_was_due(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    driver.clock.advance(MINUTE + SECOND)
    new = definition(Cron("*/5 * * * *"))
    async with nodes.paused_at_table(
        edit(nodes.left, Scope(driver.workspace, BEN), job_id, new), at="audit"
    ) as first:
        assert await tick(nodes.right) == NOTHING
    await first
    assert await tick(nodes.right) == NOTHING
    driver.clock.advance(4 * MINUTE)
    assert await tick(nodes.right) == ONE
    assert driver.sql("SELECT schedule_rev, count(*) FROM foliot.runs GROUP BY 1 ORDER BY 1") == [
        (1, 1),
        (2, 1),
    ]


async def test_a_pause_waits_for_a_tick_and_holds_its_run_back(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(pause(nodes.right, Scope(driver.workspace, BEN), job_id))
    assert await first == ONE
    await second
    assert (driver.status(), driver.runs()) == ("paused", [("schedule", "waiting", None)])
    assert driver.timer("due_at = 'infinity'", "next_at") == (True, None)


@pytest.mark.requirement("S3-7")
async def test_a_tick_passes_by_a_pause_and_fires_nothing_afterwards(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(
        pause(nodes.left, Scope(driver.workspace, BEN), job_id), at="audit"
    ) as first:
        assert await tick(nodes.right) == NOTHING
    await first
    assert await tick(nodes.right) == NOTHING
    driver.clock.advance(MINUTE)
    await resume(nodes.left, Scope(driver.workspace, BEN), job_id)
    assert driver.sql("SELECT skip_reason, count FROM foliot.runs") == [("paused", 2)]


async def test_an_archive_waits_for_a_tick_and_cancels_its_run(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(archive(nodes.right, Scope(driver.workspace, BEN), job_id))
    await first
    await second
    assert (driver.status(), driver.runs()) == ("archived", [("schedule", "cancelled", None)])


@pytest.mark.requirement("S3-7")
async def test_a_tick_passes_by_an_archive_and_fires_nothing_afterwards(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(
        archive(nodes.left, Scope(driver.workspace, BEN), job_id), at="audit"
    ) as first:
        assert await tick(nodes.right) == NOTHING
    await first
    assert await tick(nodes.right) == NOTHING
    assert driver.runs() == []


async def test_a_purge_waits_for_a_tick_and_takes_its_run_along(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(purge(nodes.right, Scope(driver.workspace, BEN), job_id))
    assert (await first, await second) == (ONE, 1)
    assert driver.sql("SELECT count(*) FROM foliot.ready") == [(0,)]


async def test_a_manual_run_waits_for_a_tick_and_stands_behind_its_run(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(run_now(nodes.right, Scope(driver.workspace, BEN), job_id))
    await first
    await second
    assert driver.runs() == [("schedule", "ready", None), ("manual", "waiting", None)]


async def test_a_tick_passes_by_a_manual_run_and_finds_it_live(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(
        run_now(nodes.left, Scope(driver.workspace, BEN), job_id), at="audit"
    ) as first:
        assert await tick(nodes.right) == NOTHING
    await first
    assert await tick(nodes.right) == ONE
    assert driver.runs() == [("manual", "ready", None), ("schedule", "skipped", "overlap")]


async def test_a_tick_passes_by_a_resume_and_fires_none_of_what_it_recorded(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    await pause(nodes.left, Scope(driver.workspace, BEN), job_id)
    driver.clock.advance(10 * MINUTE)
    async with nodes.paused_at_table(
        resume(nodes.left, Scope(driver.workspace, BEN), job_id), at="audit"
    ) as first:
        assert await tick(nodes.right) == NOTHING
    await first
    assert await tick(nodes.right) == NOTHING
    driver.clock.advance(MINUTE)
    assert await tick(nodes.right) == ONE
    assert driver.sql("SELECT skip_reason, count FROM foliot.runs ORDER BY number") == [
        ("paused", 10),
        (None, None),
    ]


async def test_a_skip_of_the_next_time_waits_for_a_tick_and_means_the_one_after(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job(rule="queue")
    driver.clock.advance(MINUTE)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(
            skip_next(nodes.right, Scope(driver.workspace, BEN), job_id, reason="holiday")
        )
    await first
    assert (await second).planned_at == driver.clock.now() + MINUTE
    driver.clock.advance(MINUTE)
    await tick(nodes.left)
    assert driver.runs() == [("schedule", "ready", None), ("schedule", "skipped", "operator")]


async def test_a_tick_passes_by_a_skip_of_the_next_time_and_obeys_it(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    driver.clock.advance(MINUTE)
    skip = skip_next(nodes.left, Scope(driver.workspace, BEN), job_id, reason="holiday")
    async with nodes.paused_at_table(skip, at="audit") as first:
        assert await tick(nodes.right) == NOTHING
    await first
    assert await tick(nodes.right) == ONE
    assert driver.runs() == [("schedule", "skipped", "operator")]


async def test_a_backfill_waits_for_a_tick_and_leaves_its_time_alone(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    start = driver.clock.now() - 2 * MINUTE
    now = driver.clock.advance(MINUTE + SECOND)
    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:
        second = await nodes.start_blocked(
            backfill(nodes.right, Scope(driver.workspace, BEN), job_id, start, now, dry_run=False)
        )
    await first
    assert (await second).count == 3
    assert [trigger for trigger, _, _ in driver.runs()] == ["schedule", "backfill", "backfill", "backfill"]
    assert driver.sql("SELECT count(DISTINCT planned_for) FROM foliot.runs") == [(4,)]
