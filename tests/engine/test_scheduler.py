"""The scheduler's step: it ticks what is due, tells the workers, and naps until the next planned time."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.schedule import Interval
from foliot.engine.loop import AT_ONCE
from foliot.engine.scheduler import CHECK_EVERY, LATE, MOMENT, Scheduler
from foliot.services.hints import Hint
from foliot.services.identity import installation
from foliot.services.jobs import jobs
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST

pytestmark = pytest.mark.anyio
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
Owner = psycopg.Connection[Any]


async def beat_every(every: timedelta, database: Database, workspace: WorkspaceId) -> None:
    await jobs.create(database, Scope(workspace, TEST), Definition("beat", Spec(Interval(every), "python")))


def is_a_check(nap: timedelta) -> bool:
    return 0.8 * CHECK_EVERY <= nap.total_seconds() <= 1.2 * CHECK_EVERY


async def test_with_nothing_planned_it_only_checks_now_and_then(database: Database) -> None:
    assert is_a_check(await Scheduler(database, lambda hint: None).step())


@pytest.mark.requirement("S0-15")
async def test_it_naps_until_just_after_the_next_planned_time(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    said: list[Hint] = []
    scheduler = Scheduler(database, said.append)
    await beat_every(MINUTE, database, workspace)
    assert is_a_check(await scheduler.step())
    clock.advance(MINUTE - SECOND)
    assert await scheduler.step() == SECOND + LATE
    assert said == []
    clock.advance(SECOND)
    assert is_a_check(await scheduler.step())
    assert said == [Hint.READY]


async def test_it_never_spins_while_the_installation_is_held(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    scheduler = Scheduler(database, lambda hint: None)
    await beat_every(MINUTE, database, workspace)
    await installation.hold_after_restore(database, "restored")
    clock.advance(MINUTE)
    assert await scheduler.step() == MOMENT
    clock.advance(MINUTE)
    assert is_a_check(await scheduler.step())
    assert owner.execute("SELECT count(*) FROM foliot.runs").fetchone() == (0,)


async def test_one_that_stays_due_makes_nobody_else_late(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner, owner_url: str
) -> None:
    scheduler = Scheduler(database, lambda hint: None)
    await beat_every(MINUTE, database, workspace)
    clock.advance(2 * SECOND)
    await beat_every(MINUTE, database, workspace)
    with psycopg.connect(owner_url) as other:
        other.execute("SELECT FROM foliot.timers ORDER BY due_at LIMIT 1 FOR UPDATE")
        clock.advance(MINUTE - SECOND)
        assert await scheduler.step() == SECOND + LATE
        clock.advance(SECOND)
        await scheduler.step()
        assert owner.execute("SELECT count(*) FROM foliot.runs").fetchone() == (1,)


@pytest.mark.requirement("S2-44", "S4-15", "S4-34", "C-5")
async def test_the_longest_sleep_is_a_setting(database: Database) -> None:
    scheduler = Scheduler(database, lambda hint: None, check_every=0.5)
    nap = await scheduler.step()
    assert timedelta(seconds=0.25) <= nap <= timedelta(seconds=1)


@pytest.mark.requirement("S4-16", "S4-34")
async def test_a_full_batch_is_followed_by_the_next_at_once(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    scheduler = Scheduler(database, lambda hint: None, batch=2)
    for _ in range(3):
        await beat_every(MINUTE, database, workspace)
    clock.advance(MINUTE)
    assert await scheduler.step() == AT_ONCE
    assert await scheduler.step() > AT_ONCE


async def test_its_first_step_logs_how_many_jobs_were_due_before_it_started(
    database: Database, clock: ManualClock, workspace: WorkspaceId, caplog: pytest.LogCaptureFixture
) -> None:
    await beat_every(MINUTE, database, workspace)
    clock.advance(10 * MINUTE)
    scheduler = Scheduler(database, lambda hint: None)
    with caplog.at_level("INFO"):
        await scheduler.step()
        clock.advance(MINUTE)
        await scheduler.step()
    assert [each.jobs for each in caplog.records if each.message == "scheduler.recovering"] == [1]  # type: ignore[attr-defined]


@pytest.mark.requirement("S2-17", "S2-44")
async def test_it_says_what_it_has_to_do_at_the_start_and_what_each_poll_did(
    database: Database, clock: ManualClock, workspace: WorkspaceId, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "foliot.engine.scheduler")
    scheduler = Scheduler(database, lambda hint: None, check_every=7.0)
    for every in (MINUTE, 2 * MINUTE):
        await beat_every(every, database, workspace)
    await scheduler.step()
    clock.advance(MINUTE)
    nap = await scheduler.step()
    [start] = [each for each in caplog.records if each.message == "scheduler.started"]
    assert (start.levelname, start.jobs, start.poll_interval_ms) == ("INFO", 2, 7000)  # type: ignore[attr-defined]
    polls: list[Any] = [each for each in caplog.records if each.message == "scheduler.polled"]
    assert [(each.levelname, each.due, each.recorded) for each in polls] == [("DEBUG", 0, 0), ("DEBUG", 1, 1)]
    assert polls[1].next_poll_ms == round(nap.total_seconds() * 1000)
    assert polls[1].ms >= 0
