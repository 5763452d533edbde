"""New zone data: timers move to where it puts them, owners get a notice, and no local time runs twice."""

from __future__ import annotations

from datetime import timedelta

from foliot.domain.access import Scope
from foliot.domain.ids import WorkspaceId
from foliot.domain.schedule import ZONE_DATA_VERSION, Cron
from foliot.services.identity import installation
from foliot.services.runs import history
from foliot.services.scheduling.repair import refresh_zone_data
from foliot.services.scheduling.tick import tick
from foliot.storage.tx import Database
from foliot.testing.clock import NOON, ManualClock
from tests.services.builders import HOURLY, Owner, advance_and_tick, claim_runs, create_job, report_runs

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MORNING = Cron("0 9 * * *", "America/New_York")  # 14:00 UTC in January


def given_older_data(owner: Owner) -> None:
    owner.execute("UPDATE foliot.installation SET tzdata_version = '2020a'")


async def test_timers_that_new_zone_data_puts_elsewhere_move_and_their_owners_get_a_notice(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    moved = await create_job(database, workspace, MORNING)
    await create_job(database, workspace, HOURLY)
    given_older_data(owner)
    owner.execute(
        "UPDATE foliot.timers SET due_at = %(at)s, next_at = %(at)s WHERE job_id = %(job)s",
        {"at": NOON + 3 * HOUR, "job": moved},
    )
    assert await refresh_zone_data(database, limit=1) == 1
    assert (await installation.state(database)).tzdata_version == ZONE_DATA_VERSION
    found = owner.execute("SELECT due_at, next_at FROM foliot.timers WHERE job_id = %s", [moved]).fetchone()
    assert found == (NOON + 2 * HOUR, NOON + 2 * HOUR)
    (reported,) = owner.execute(
        "SELECT workspace_id, object_id, actor, before ->> 'next_run_at', after ->> 'next_run_at' FROM foliot.audit"
        " WHERE action = 'job.rescheduled'"
    ).fetchall()
    assert reported[:3] == (workspace, str(moved), f"zone data {ZONE_DATA_VERSION}")
    assert reported[3:] == ("2027-01-15T15:00:00+00:00", "2027-01-15T14:00:00+00:00")
    noticed = owner.execute("SELECT workspace_id, event, job_id FROM foliot.notices").fetchall()
    assert noticed == [(workspace, "zone_data_changed", moved)]
    assert await refresh_zone_data(database) is None


async def test_a_local_time_that_has_its_record_is_not_planned_again(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    """Older data put 9:00 an hour earlier; it ran, and the newer data puts the same 9:00 ahead of us once more."""
    job_id = await create_job(database, workspace, MORNING)
    await advance_and_tick(database, clock, 2 * HOUR)
    await report_runs(database, await claim_runs(database))
    clock.set(NOON + HOUR + HOUR / 2)
    owner.execute("UPDATE foliot.runs SET planned_for = %s", [NOON + HOUR])
    owner.execute(
        "UPDATE foliot.timers SET cursor_at = %(ran)s, due_at = %(next)s, next_at = %(next)s",
        {"ran": NOON + HOUR, "next": NOON + HOUR + DAY},
    )
    given_older_data(owner)
    assert await refresh_zone_data(database) == 1
    assert owner.execute("SELECT due_at FROM foliot.timers").fetchone() == (NOON + 2 * HOUR + DAY,)
    await advance_and_tick(database, clock, HOUR)
    assert len((await history.of_job(database, Scope(workspace), job_id)).items) == 1
    await advance_and_tick(database, clock, DAY)
    assert len((await history.of_job(database, Scope(workspace), job_id)).items) == 2


async def test_a_node_with_older_data_neither_refreshes_nor_ticks(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await create_job(database, workspace, MORNING)
    owner.execute("UPDATE foliot.installation SET tzdata_version = '2199a'")
    owner.execute("UPDATE foliot.timers SET due_at = %s", [NOON - HOUR])
    assert await refresh_zone_data(database) is None
    assert (await installation.state(database)).tzdata_version == "2199a"
    clock.advance(DAY)
    assert (await tick(database)).looked_at == 0


async def test_a_refresh_that_was_cut_short_is_made_again(
    database: Database, owner: Owner, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await create_job(database, workspace, MORNING)
    owner.execute(
        "UPDATE foliot.installation SET tzdata_version = %s", [ZONE_DATA_VERSION]
    )  # stored, not walked
    owner.execute("UPDATE foliot.timers SET due_at = %s, next_at = NULL", [NOON + DAY])
    assert await refresh_zone_data(database) == 1
    assert await refresh_zone_data(database) is None
