"""Every definition a job ever had is kept, with who wrote it and why; and any of them can be put in force again."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.dependencies import Edge
from foliot.domain.errors import Conflict, Invalid, NotFound, StaleRevision
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.schedule import Calendar, CalendarKind, Cron, Manual, Weekly
from foliot.services.jobs import calendars, jobs, revisions
from foliot.services.jobs.job_edits import edit
from foliot.services.jobs.job_status import archive, purge
from foliot.services.runs.explain import explain_instant
from foliot.testing.fixtures import ANA, BEN, EVE
from tests.services.edges import set_edges
from tests.services.service_driver import ServiceDriver, definition

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def kept(driver: ServiceDriver, job_id: JobId) -> list[tuple[int, str, str | None]]:
    found = await revisions.page(driver.database, Scope(driver.workspace), job_id)
    return [(each.revision.revision, each.revision.actor, each.revision.note) for each in found.items]


async def test_creating_and_editing_keep_the_whole_definition(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("0 * * * *"))
    driver.clock.advance(HOUR)
    wanted = definition(Cron("0 * * * *"), name="other")
    await edit(
        driver.database, Scope(driver.workspace, BEN), job_id, wanted, note="It has a better name now."
    )
    found = await revisions.page(driver.database, Scope(driver.workspace), job_id)
    assert await kept(driver, job_id) == [(2, "ben", "It has a better name now."), (1, "ana", None)]
    newest, oldest = found.items
    assert (newest.revision.definition, newest.before) == (wanted, oldest.revision.definition)
    assert (newest.revision.at, oldest.before) == (driver.clock.now(), None)


async def test_pages_join_without_a_seam(driver: ServiceDriver) -> None:
    job_id = await driver.job(Manual())
    for number in range(4):
        await edit(
            driver.database, Scope(driver.workspace, BEN), job_id, definition(Manual(), name=f"name {number}")
        )
    seen, cursor = [], None
    while True:
        page = await revisions.page(driver.database, Scope(driver.workspace), job_id, cursor=cursor, limit=2)
        seen += [(each.revision.revision, each.before and each.before.name) for each in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [(5, "name 2"), (4, "name 1"), (3, "name 0"), (2, "beat"), (1, None)]
    with pytest.raises(Invalid, match="cursor"):
        await revisions.page(driver.database, Scope(driver.workspace), job_id, cursor="²")


async def test_going_back_adds_a_revision_that_says_so(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("0 * * * *"))
    first = (await jobs.get(driver.database, driver.workspace, job_id)).definition
    await edit(
        driver.database, Scope(driver.workspace, BEN), job_id, definition(Cron("30 * * * *"), name="other")
    )
    back = await revisions.revert(
        driver.database, Scope(driver.workspace, EVE), job_id, 1, note="Half past was wrong."
    )
    stored = await jobs.get(driver.database, driver.workspace, job_id)
    assert (back.job.revision, stored.definition, stored.schedule_rev) == (3, first, 3)
    assert (await kept(driver, job_id))[0] == (3, "eve", "Back to revision 1. Half past was wrong.")
    assert driver.audited() == ["job.created", "job.edited", "job.edited"]


async def test_going_back_to_nowhere_or_behind_someones_back_is_refused(driver: ServiceDriver) -> None:
    job_id = await driver.job(Manual())
    await edit(driver.database, Scope(driver.workspace, BEN), job_id, definition(Manual(), name="other"))
    with pytest.raises(Invalid, match="no revision 9"):
        await revisions.revert(driver.database, Scope(driver.workspace, EVE), job_id, 9)
    with pytest.raises(StaleRevision, match="revision 2, not 1: ben changed it") as caught:
        await revisions.revert(driver.database, Scope(driver.workspace, EVE, expected_revision=1), job_id, 1)
    assert caught.value.revision == 2
    stranger = WorkspaceId(uuid4())
    with pytest.raises(NotFound):
        await revisions.revert(driver.database, Scope(stranger, EVE), job_id, 1)
    with pytest.raises(NotFound):
        await revisions.page(driver.database, Scope(stranger), job_id)
    await archive(driver.database, Scope(driver.workspace, ANA), job_id)
    with pytest.raises(Conflict, match="archived"):
        await revisions.revert(driver.database, Scope(driver.workspace, EVE), job_id, 1)


async def test_what_a_deletion_elsewhere_changes_is_a_revision_too(driver: ServiceDriver) -> None:
    upstream = await driver.job(Manual())
    job_id = await driver.job(Manual())
    await set_edges(driver.database, driver.workspace, job_id, [Edge(upstream)], BEN)
    lunch = Calendar("lunch", CalendarKind.BLACKOUT, (Weekly(time(12, 30), time(14)),))
    calendar_id = await calendars.create(driver.database, Scope(driver.workspace, BEN), lunch)
    now = (await jobs.get(driver.database, driver.workspace, job_id)).definition
    wanted = replace(now, spec=replace(now.spec, calendars=(calendar_id,)))
    await edit(driver.database, Scope(driver.workspace, BEN), job_id, wanted)
    await calendars.delete(driver.database, Scope(driver.workspace, EVE), calendar_id, detach=True)
    await archive(driver.database, Scope(driver.workspace, EVE), upstream, detach=True)
    assert await kept(driver, job_id) == [
        (5, "eve", "A job it depended on was deleted."),
        (4, "eve", 'The calendar "lunch" was deleted.'),
        (3, "ben", None),
        (2, "ben", None),
        (1, "ana", None),
    ]


async def test_revisions_cannot_be_changed_and_go_only_with_a_purge(driver: ServiceDriver) -> None:
    job_id = await driver.job(Manual())
    rights = "SELECT has_table_privilege(role, 'foliot.revisions', 'UPDATE, DELETE') FROM unnest('{foliot_app,foliot_engine}'::text[]) role"
    assert driver.sql(rights) == [(False,), (False,)]
    await archive(driver.database, Scope(driver.workspace, ANA), job_id)
    assert driver.sql("SELECT count(*) FROM foliot.revisions") == [(1,)]
    await purge(driver.database, Scope(driver.workspace, ANA), job_id)
    assert driver.sql("SELECT count(*) FROM foliot.revisions") == [(0,)]


async def test_a_deletion_of_what_has_changed_since_is_refused(driver: ServiceDriver) -> None:
    job_id = await driver.job(Manual())
    await edit(driver.database, Scope(driver.workspace, BEN), job_id, definition(Manual(), name="other"))
    for verb in (archive, purge):
        with pytest.raises(StaleRevision):
            await verb(driver.database, Scope(driver.workspace, EVE, expected_revision=1), job_id)
    await archive(driver.database, Scope(driver.workspace, EVE, expected_revision=2), job_id)


async def test_a_past_instant_is_explained_by_the_revision_in_force_then(driver: ServiceDriver) -> None:
    start = driver.clock.now()
    job_id = await driver.job(Cron("30 * * * *"))
    driver.clock.advance(2 * HOUR + timedelta(minutes=10))
    await edit(driver.database, Scope(driver.workspace, BEN), job_id, definition(Cron("45 * * * *")))
    half_past = start.replace(minute=30)
    reported = (
        await explain_instant(driver.database, Scope(driver.workspace), job_id, half_past.replace(minute=45))
    ).explanation
    assert reported.sentence.startswith("There was no planned time")
    assert "30:00" in reported.facts[0], "the times named are those of the schedule it had"
    assert reported.facts[-1] == "Revision 1 of the job was in force then; it is at revision 2 now."
    reported = (
        await explain_instant(driver.database, Scope(driver.workspace), job_id, start + 3 * HOUR)
    ).explanation
    assert "45:00" in reported.facts[0]
