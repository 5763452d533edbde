"""A restored database fires nothing until its operator has chosen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import Conflict
from foliot.domain.ids import WorkspaceId
from foliot.domain.schedule import Cron, Interval
from foliot.services.identity import installation
from foliot.services.jobs import jobs
from foliot.services.scheduling import after_restore
from foliot.services.scheduling.tick import tick
from foliot.storage.installation import MissedChoice
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST

pytestmark = pytest.mark.anyio
RUNS = "SELECT status, skip_reason, count FROM foliot.runs ORDER BY number"


@pytest.fixture
async def held(database: Database, clock: ManualClock, workspace: WorkspaceId) -> Database:
    """An hourly job in a database that was restored a week later."""
    await jobs.create(
        database, Scope(workspace, TEST), Definition("hourly", Spec(Cron("0 * * * *"), "python"))
    )
    clock.advance(timedelta(days=7, minutes=10))
    await installation.hold_after_restore(database, "restored from monday.dump")
    return database


async def test_nothing_fires_while_it_is_held(held: Database, owner: psycopg.Connection[Any]) -> None:
    assert (await tick(held)).looked_at == 0
    assert owner.execute(RUNS).fetchall() == []


async def test_skip_records_what_went_by_and_runs_none_of_it(
    held: Database, owner: psycopg.Connection[Any]
) -> None:
    await after_restore.release(held, MissedChoice.SKIP)
    assert owner.execute(RUNS).fetchall() == [("skipped", "operator", 168)]
    assert (await tick(held)).looked_at == 0


async def test_catch_up_leaves_it_to_the_misfire_policy(
    held: Database, owner: psycopg.Connection[Any]
) -> None:
    await after_restore.release(held, MissedChoice.CATCH_UP)
    await tick(held)
    assert owner.execute(RUNS).fetchall() == [("skipped", "misfire", 167), (None, None, None)]


async def test_there_is_nothing_to_release_where_nothing_is_held(
    database: Database, workspace: WorkspaceId
) -> None:
    await jobs.create(
        database, Scope(workspace, TEST), Definition("beat", Spec(Interval(timedelta(minutes=1)), "python"))
    )
    with pytest.raises(Conflict):
        await after_restore.release(database, MissedChoice.SKIP)


async def test_a_job_that_cannot_be_read_keeps_no_other_from_being_released(
    held: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    bad = Definition("bad", Spec(Cron("0 * * * *"), "python"))
    bad_id = (await jobs.create(held, Scope(workspace, TEST), bad)).id
    clock.advance(timedelta(hours=2))
    owner.execute("UPDATE foliot.timers SET spec = '{}' WHERE job_id = %s", (bad_id,))
    await after_restore.release(held, MissedChoice.SKIP)
    assert sorted(owner.execute("SELECT skip_reason, count FROM foliot.runs").fetchall()) == [
        ("operator", 170),
        ("scheduler_error", None),
    ]
    assert (await tick(held)).looked_at == 0


async def test_a_time_that_has_its_record_already_is_skipped_without_another(
    held: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    await after_restore.release(held, MissedChoice.SKIP)
    owner.execute(
        "UPDATE foliot.timers SET cursor_at = cursor_at - interval '7 days', due_at = %s", (clock.now(),)
    )
    await installation.hold_after_restore(held, "restored once more")
    await after_restore.release(held, MissedChoice.SKIP)
    assert owner.execute(RUNS).fetchall() == [("skipped", "operator", 168)]
    assert (await tick(held)).looked_at == 0


async def test_nothing_is_released_where_a_skip_cannot_be_recorded(
    held: Database, owner: psycopg.Connection[Any]
) -> None:
    owner.execute(
        "CREATE FUNCTION foliot.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$"
    )
    owner.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON foliot.runs FOR EACH ROW EXECUTE FUNCTION foliot.refuse()"
    )
    with pytest.raises(psycopg.errors.RaiseException):
        await after_restore.release(held, MissedChoice.SKIP)
    assert owner.execute("SELECT held_at IS NULL FROM foliot.installation").fetchall() == [(False,)]
