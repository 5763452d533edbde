"""Ticking: planned times become runs, once each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.schedule import Cron, Interval
from foliot.services import jobs
from foliot.services.tick import tick
from foliot.storage.tx import Database
from foliot.testing.actors import TEST
from foliot.testing.clock import ManualClock

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


async def test_a_due_timer_becomes_a_run_and_moves_on(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    created = await jobs.create(
        database, workspace, Definition("beat", Spec(Interval(MINUTE), "python")), TEST
    )
    assert (await tick(database)).looked_at == 0
    start = clock.now()
    clock.advance(MINUTE)
    assert (await tick(database)).recorded == 1
    assert (await tick(database)).recorded == 0
    assert owner.execute("SELECT job_id, planned_for, status FROM foliot.runs").fetchall() == [
        (created.id, start + MINUTE, None)
    ]
    assert owner.execute("SELECT live, due_at, fire_count FROM foliot.timers").fetchall() == [
        (1, start + 2 * MINUTE, 1)
    ]
    assert owner.execute("SELECT queue, type FROM foliot.ready").fetchall() == [("default", "python")]


async def test_a_second_planned_time_is_skipped_while_the_first_is_live(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    await jobs.create(database, workspace, Definition("beat", Spec(Cron("* * * * *"), "python")), TEST)
    for _ in range(3):
        clock.advance(MINUTE)
        await tick(database)
    assert owner.execute(
        "SELECT number, status, skip_reason FROM foliot.runs ORDER BY number"
    ).fetchall() == [
        (1, None, None),
        (2, "skipped", "overlap"),
        (3, "skipped", "overlap"),
    ]


async def test_rules_that_cannot_be_read_stop_their_own_job_and_no_other(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    bad = await jobs.create(database, workspace, Definition("bad", Spec(Cron("* * * * *"), "python")), TEST)
    good = await jobs.create(database, workspace, Definition("good", Spec(Cron("* * * * *"), "python")), TEST)
    owner.execute("UPDATE foliot.timers SET spec = %s WHERE job_id = %s", ('{"schedule": 7}', bad.id))
    for _ in range(12):
        clock.advance(MINUTE)
        await tick(database)
    status = "SELECT id, status FROM foliot.jobs"
    assert dict(owner.execute(status).fetchall()) == {bad.id: "failed", good.id: "active"}
    records = "SELECT status, skip_reason FROM foliot.runs WHERE job_id = %s"
    assert owner.execute(records, (bad.id,)).fetchall() == [("skipped", "scheduler_error")] * 3
