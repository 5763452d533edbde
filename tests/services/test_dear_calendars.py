"""Calendars with many rules: bounded where they are written, evaluated off the event loop, and never at the cost of other jobs."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid, ScheduleTooDear
from foliot.domain.ids import CalendarId
from foliot.domain.policy import Overlap, OverlapRule
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    CronStretch,
    Interval,
    Otherwise,
    Weekly,
    timetable,
)
from foliot.domain.schedule.calendar import calendar_closed_until
from foliot.services.jobs import calendars, job_search
from foliot.services.runs.explain import explain_instant
from foliot.testing.fixtures import ADA
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
FIVE_SECONDS = Interval(timedelta(seconds=5))
CONCURRENT = Overlap(OverlapRule.CONCURRENT)


def weekly_rules(count: int, length: int = 5) -> tuple[Weekly, ...]:
    starts = (10 * n % 1440 for n in range(count))
    return tuple(
        Weekly(time(at // 60, at % 60), time((at + length) % 1440 // 60, (at + length) % 60)) for at in starts
    )


def blackout(name: str, rules: int) -> Calendar:
    return Calendar(name, CalendarKind.BLACKOUT, weekly_rules(rules), "Europe/Paris")


async def make(harness: WorkspaceHarness, calendar: Calendar) -> CalendarId:
    return await calendars.create(harness.database, Scope(harness.workspace, ADA), calendar)


def make_too_dear(harness: WorkspaceHarness, calendar_id: CalendarId) -> None:
    """Store rules that no write accepts any more."""
    rule = {"kind": "cron_stretch", "expr": "* * * * *", "duration": 30}
    harness.owner.execute(
        "UPDATE foliot.calendars SET definition = jsonb_set(definition, '{rules}', %s::jsonb) WHERE id = %s",
        [json.dumps([rule] * 3), calendar_id],
    )


async def test_a_job_may_use_three_thousand_rules_and_not_one_more(harness: WorkspaceHarness) -> None:
    three = [await make(harness, blackout(f"dense {n}", 1_000)) for n in range(3)]
    small = await make(harness, blackout("small", 1))
    await harness.job("three", FIVE_SECONDS, calendars=tuple(three))
    with pytest.raises(Invalid, match="3,001 rules together") as refused:
        await harness.job("four", FIVE_SECONDS, calendars=(*three, small))
    assert refused.value.pointer == "/calendars"


async def test_a_calendar_cannot_grow_beyond_what_its_jobs_may_use(harness: WorkspaceHarness) -> None:
    many = [await make(harness, blackout(f"dense {n}", 1_000)) for n in range(2)]
    growing = [await make(harness, blackout(f"growing {n}", 500)) for n in range(2)]
    await harness.job("full", FIVE_SECONDS, calendars=(*many, *growing))
    scope = Scope(harness.workspace, ADA)
    with pytest.raises(Invalid, match='job "full" have 3,001 rules together') as refused:
        await calendars.change(harness.database, scope, growing[0], {"rules": weekly_rules(501)})
    assert refused.value.pointer == "/rules"
    await calendars.change(harness.database, scope, growing[0], {"rules": weekly_rules(499)})


async def test_rules_that_start_too_often_are_refused_on_create_and_edit(harness: WorkspaceHarness) -> None:
    often = tuple(CronStretch("*/2 * * * *", timedelta(seconds=n + 1)) for n in range(10))
    with pytest.raises(ScheduleTooDear, match="50,400 times a week"):
        await make(harness, Calendar("often", CalendarKind.BLACKOUT, often))
    small = await make(harness, blackout("small", 1))
    with pytest.raises(ScheduleTooDear):
        await calendars.change(harness.database, Scope(harness.workspace, ADA), small, {"rules": often})


async def test_a_job_with_a_dense_calendar_is_evaluated_off_the_event_loop(
    harness: WorkspaceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()

    def note(calendar: Calendar, instant: datetime) -> datetime | None:
        seen.add(threading.current_thread().name.rsplit("_", 1)[0])
        return closed_until(calendar, instant)

    closed_until = calendar_closed_until
    monkeypatch.setattr(timetable, "calendar_closed_until", note)
    dense = await make(harness, blackout("dense", 1_000))
    job = await harness.job("dense", FIVE_SECONDS, calendars=(dense,), overlap=CONCURRENT)
    scope = Scope(harness.workspace, ADA)
    assert len((await job_search.ahead(harness.database, scope, job, 20)).times) == 20
    await explain_instant(harness.database, scope, job, harness.clock.now() + timedelta(minutes=1))
    await calendars.change(harness.database, scope, dense, {"rules": weekly_rules(1_000, 6)})
    assert seen == {"schedule-request"}
    seen.clear()
    harness.clock.advance(timedelta(minutes=10))
    assert await harness.tick() > 0
    assert seen == {"schedule-tick"}


async def test_a_job_that_is_too_dear_fails_alone_and_says_why(harness: WorkspaceHarness) -> None:
    calendar = await make(harness, blackout("small", 1))
    dear = await harness.job("dear", Cron("*/5 * * * *"), calendars=(calendar,))
    others = [await harness.job(f"other {n}", Cron("*/5 * * * *")) for n in range(3)]
    make_too_dear(harness, calendar)
    harness.clock.advance(timedelta(minutes=5))
    assert await harness.tick() == 4
    records: Any = harness.owner.execute(
        "SELECT job_id, status, skip_reason, note FROM foliot.runs ORDER BY number"
    ).fetchall()
    found = {job_id: (status, reason) for job_id, status, reason, _ in records}
    assert found == {dear: ("skipped", "scheduler_error"), **dict.fromkeys(others, (None, None))}
    [note] = [note for job_id, _, _, note in records if job_id == dear]
    assert "30,240 times a week" in note
    explained = await explain_instant(harness.database, Scope(harness.workspace, ADA), others[0])
    assert explained.explanation.verdict.value == "waiting"


async def test_an_edit_of_a_calendar_goes_on_past_a_job_that_is_too_dear(harness: WorkspaceHarness) -> None:
    dear, shared = [await make(harness, blackout(name, 1)) for name in ("dear", "shared")]
    first = await harness.job("a", Cron("45 11 * * *"), calendars=(dear, shared))
    second = await harness.job("b", Cron("45 11 * * *"), calendars=(shared,))
    make_too_dear(harness, dear)
    before = harness.timer(first, "due_at")
    noon = (Weekly(time(12), time(13)),)
    changes = {"rules": noon, "otherwise": Otherwise.DEFER}
    assert await calendars.change(harness.database, Scope(harness.workspace, ADA), shared, changes) == 1
    assert harness.timer(first, "due_at") == before
    assert harness.timer(second, "due_at") == (datetime(2027, 1, 16, 12, tzinfo=UTC),)
