"""Calendars: kept, refused, and counted at once by every job that uses them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid, NotFound
from foliot.domain.ids import CalendarId, WorkspaceId
from foliot.domain.policy import Limits, Overlap, OverlapRule, Retry
from foliot.domain.schedule import (
    Absolute,
    Calendar,
    CalendarKind,
    Cron,
    CronStretch,
    Days,
    Interval,
    Otherwise,
    Weekly,
)
from foliot.services.jobs import calendars
from foliot.services.settlement.waiting_runs import expire_runs, open_windows
from foliot.testing.fixtures import ADA, EVE
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
LUNCH = Calendar(
    "lunch", CalendarKind.BLACKOUT, (Weekly(time(12, 30), time(14)),), "Europe/Paris", Otherwise.DEFER
)
EVERY_KIND = Calendar(
    "every kind",
    CalendarKind.ALLOW,
    (
        Weekly(time(22), time(4), frozenset((0, 6))),
        Absolute(datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)),
        CronStretch("0 9 * * 1-5", timedelta(hours=8)),
        Days(date(2027, 12, 24), date(2027, 12, 26), "Christmas"),
        Days(date(2027, 5, 1)),
    ),
    "America/Argentina/Buenos_Aires",
)


async def make(harness: WorkspaceHarness, calendar: Calendar = LUNCH) -> CalendarId:
    return await calendars.create(harness.database, Scope(harness.workspace, ADA), calendar)


async def test_a_calendar_is_kept_as_it_was_written(harness: WorkspaceHarness) -> None:
    made = [await make(harness, calendar) for calendar in (LUNCH, EVERY_KIND)]
    found = await calendars.get(harness.database, harness.workspace, made[1])
    assert (found.calendar, found.revision, found.users) == (EVERY_KIND, 1, 0)
    listed = await calendars.page(harness.database, harness.workspace)
    assert [row.calendar for row in listed.items] == [EVERY_KIND, LUNCH]
    first = await calendars.page(harness.database, harness.workspace, limit=1)
    rest = await calendars.page(harness.database, harness.workspace, first.next_cursor)
    assert [row.calendar for row in rest.items] == [LUNCH]


async def test_a_name_is_given_once(harness: WorkspaceHarness) -> None:
    await make(harness)
    other = await make(harness, EVERY_KIND)
    with pytest.raises(Conflict, match='named "lunch"'):
        await make(harness)
    with pytest.raises(Conflict, match='named "lunch"'):
        await calendars.edit(harness.database, Scope(harness.workspace, ADA), other, LUNCH)


@pytest.mark.parametrize(
    "change, pointer",
    [
        ({"name": " "}, "/name"),
        ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"rules": ()}, "/rules"),
        ({"rules": (Weekly(time(1), time(2), frozenset()),)}, "/rules/0/days"),
        ({"rules": (Weekly(time(1), time(2), frozenset((7,))),)}, "/rules/0/days"),
        ({"rules": (CronStretch("0 25 * * *", HOUR),)}, "/rules/0/expr"),
        ({"rules": (CronStretch("0 5 * * *", timedelta(0)),)}, "/rules/0/duration"),
        ({"rules": (Absolute(datetime(2027, 1, 1), datetime(2027, 1, 2)),)}, "/rules/0/start"),
        (
            {"rules": (Absolute(datetime(2027, 1, 2, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),)},
            "/rules/0/end",
        ),
    ],
)
async def test_a_calendar_that_means_nothing_is_refused_where_it_is_wrong(
    harness: WorkspaceHarness, change: dict[str, Any], pointer: str
) -> None:
    whole = {"name": "x", "kind": CalendarKind.BLACKOUT, "rules": LUNCH.rules, "timezone": "UTC"}
    with pytest.raises(Invalid) as refused:
        await make(harness, Calendar(**{**whole, **change}))
    assert refused.value.pointer == pointer


async def test_a_job_that_uses_one_keeps_to_it(harness: WorkspaceHarness) -> None:
    lunch = await make(harness)
    job = await harness.job("noon", Cron("45 11 * * *"), calendars=(lunch,))  # 12:45 in Paris
    assert harness.timer(job, "next_at") == (datetime(2027, 1, 16, 13, 0, tzinfo=UTC),)
    harness.clock.set(datetime(2027, 1, 16, 12, 59, 59, tzinfo=UTC))
    assert await harness.tick() == 0
    harness.clock.set(datetime(2027, 1, 16, 13, tzinfo=UTC))
    assert await harness.tick() == 1
    assert await harness.run_once() == [job]


async def test_an_edit_moves_the_timers_of_all_its_users_at_once(
    harness: WorkspaceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendars, "BATCH", 2)
    lunch = await make(harness)
    jobs = [await harness.job(f"noon {n}", Cron("45 11 * * *"), calendars=(lunch,)) for n in range(5)]
    free = await harness.job("free", Cron("45 11 * * *"))
    later = Calendar(
        "lunch", CalendarKind.BLACKOUT, (Weekly(time(12, 30), time(15)),), "Europe/Paris", Otherwise.DEFER
    )
    assert await calendars.edit(harness.database, Scope(harness.workspace, ADA), lunch, later) == 5
    for job in jobs:
        assert harness.timer(job, "due_at, next_at") == (datetime(2027, 1, 16, 14, 0, tzinfo=UTC),) * 2
    assert harness.timer(free, "next_at") == (datetime(2027, 1, 16, 11, 45, tzinfo=UTC),)
    early = Calendar("lunch", CalendarKind.BLACKOUT, (Weekly(time(1), time(2)),), "Europe/Paris")
    harness.clock.set(datetime(2027, 1, 16, 12, tzinfo=UTC))
    assert await calendars.edit(harness.database, Scope(harness.workspace, ADA), lunch, early) == 5
    assert await harness.tick() == 6  # what was deferred is due now
    assert (await calendars.get(harness.database, harness.workspace, lunch)).revision == 3


async def test_one_in_use_is_deleted_only_with_detach(harness: WorkspaceHarness) -> None:
    lunch = await make(harness)
    job = await harness.job("noon", Cron("45 11 * * *"), calendars=(lunch,))
    with pytest.raises(Conflict, match='"lunch" is used by "noon"'):
        await calendars.delete(harness.database, Scope(harness.workspace, ADA), lunch)
    await calendars.delete(harness.database, Scope(harness.workspace, ADA), lunch, detach=True)
    assert harness.timer(job, "next_at") == (datetime(2027, 1, 16, 11, 45, tzinfo=UTC),)
    revision = harness.owner.execute("SELECT revision, definition -> 'spec' -> 'calendars' FROM foliot.jobs")
    assert revision.fetchall() == [(2, None)]
    with pytest.raises(NotFound):
        await calendars.get(harness.database, harness.workspace, lunch)


async def test_a_job_cannot_use_one_that_is_not_there(harness: WorkspaceHarness) -> None:
    with pytest.raises(Invalid, match="no such calendar") as refused:
        await harness.job("noon", Cron("45 11 * * *"), calendars=(CalendarId(uuid4()),))
    assert refused.value.pointer == "/calendars/0"


async def test_another_workspace_sees_none_of_them(harness: WorkspaceHarness) -> None:
    lunch = await make(harness)
    outsider = WorkspaceId(uuid4())
    harness.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', %s)",
        [outsider, harness.clock.now()],
    )
    assert (await calendars.page(harness.database, outsider)).items == ()
    with pytest.raises(NotFound):
        await calendars.get(harness.database, outsider, lunch)
    with pytest.raises(NotFound):
        await calendars.edit(harness.database, Scope(outsider, EVE), lunch, LUNCH)
    with pytest.raises(NotFound):
        await calendars.delete(harness.database, Scope(outsider, EVE), lunch, detach=True)
    await calendars.create(harness.database, Scope(outsider, EVE), LUNCH)


@pytest.mark.parametrize("otherwise, status", [(Otherwise.DEFER, None), (Otherwise.SKIP, "failed")])
async def test_a_retry_keeps_to_its_calendar_too(
    harness: WorkspaceHarness, otherwise: Otherwise, status: str | None
) -> None:
    """It fails at 12:00 and would be tried again at 13:00, in the middle of lunch."""
    lunch = await make(harness, Calendar("lunch", LUNCH.kind, LUNCH.rules, "UTC", otherwise))
    job = await harness.job(
        "daily", Interval(timedelta(days=1)), calendars=(lunch,), retry=Retry(delays=(HOUR,))
    )
    harness.clock.advance(timedelta(days=1))
    await harness.tick()
    [mine] = await harness.claim()
    await harness.report(mine, BROKE)
    assert harness.runs(job, "status") == [(status,)]
    harness.clock.set(harness.clock.now().replace(hour=13, minute=59))
    assert await harness.claim() == []
    harness.clock.set(harness.clock.now().replace(hour=14, minute=0))
    assert await harness.run_once() == ([job] if otherwise is Otherwise.DEFER else [])


@pytest.mark.parametrize("otherwise", list(Otherwise))
async def test_a_run_that_found_no_worker_in_the_open_does_not_start_in_a_blackout(
    harness: WorkspaceHarness, otherwise: Otherwise
) -> None:
    """Ready at 12:00; nobody comes until 13:00, in the middle of lunch."""
    lunch = await make(harness, Calendar("lunch", LUNCH.kind, LUNCH.rules, "UTC", otherwise))
    job = await harness.job("daily", Interval(timedelta(days=1)), calendars=(lunch,))
    harness.clock.advance(timedelta(days=1))
    await harness.tick()
    harness.clock.set(harness.clock.now().replace(hour=13))
    assert await harness.claim() == []
    await expire_runs(harness.database)
    if otherwise is Otherwise.SKIP:
        assert harness.runs(job) == [("skipped", "blackout", None)]
        return
    assert harness.waits() == [(job, "window")]
    harness.clock.set(harness.clock.now().replace(hour=14))
    assert await open_windows(harness.database) == 1
    assert await harness.run_once() == [job]


async def test_a_retry_that_a_blackout_stops_is_bound_by_no_start_deadline(harness: WorkspaceHarness) -> None:
    """It failed at 12:00 and may be tried again at 12:05; nobody comes until lunch, and after lunch for hours."""
    lunch = await make(harness, Calendar("lunch", LUNCH.kind, LUNCH.rules, "UTC", Otherwise.DEFER))
    job = await harness.job(
        "daily", Interval(timedelta(days=1)), calendars=(lunch,), limits=Limits(start_deadline=HOUR / 2)
    )
    harness.clock.advance(timedelta(days=1))
    await harness.tick()
    [first] = await harness.claim()
    assert await harness.report(first, BROKE)
    harness.clock.set(harness.clock.now().replace(hour=13))
    await expire_runs(harness.database)
    assert harness.waits() == [(job, "window")]
    harness.clock.set(harness.clock.now().replace(hour=17))
    await expire_runs(harness.database)
    await open_windows(harness.database)
    assert await harness.run_once() == [job]


async def test_a_run_in_line_behind_another_outlives_a_blackout(harness: WorkspaceHarness) -> None:
    lunch = await make(harness, Calendar("lunch", LUNCH.kind, LUNCH.rules, "UTC", Otherwise.DEFER))
    queue = Overlap(OverlapRule.QUEUE)
    job = await harness.job("beat", Interval(HOUR / 5), calendars=(lunch,), overlap=queue)
    harness.clock.advance(HOUR / 5)
    await harness.tick()
    [first] = await harness.claim()
    harness.clock.advance(HOUR / 5)
    await harness.tick()
    harness.clock.advance(HOUR)  # 13:24
    await harness.tick()
    await expire_runs(harness.database)
    await harness.report(first)
    assert harness.runs(job, "status")[:2] == [("succeeded",), (None,)]
    assert await harness.claim() == []
    harness.clock.set(harness.clock.now().replace(hour=14))
    await open_windows(harness.database)
    assert await harness.run_once() == [job]
