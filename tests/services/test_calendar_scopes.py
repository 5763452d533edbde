"""Calendars with a scope: they hold jobs that do not name them, everywhere that a calendar counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import Invalid
from foliot.domain.ids import CalendarId, JobId, WorkspaceId
from foliot.domain.run import Target, TargetKind
from foliot.domain.schedule import Calendar, CalendarKind, Cron, Days, Otherwise, Weekly
from foliot.domain.schedule.calendar import CalendarScope
from foliot.services.jobs import agenda, calendars, job_edits, job_search, jobs
from foliot.services.runs import explain
from foliot.testing.fixtures import ADA, EVE
from tests.services.remote_hosts import register_host, worker_principal
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
NIGHTLY = Cron("30 2 * * *")
SUNDAY = datetime(2027, 1, 17, 2, 30, tzinfo=UTC)
OPENS = datetime(2027, 1, 17, 3, tzinfo=UTC)
SATURDAY = datetime(2027, 1, 16, 2, 30, tzinfo=UTC)
EVERYTHING = CalendarScope()
MAINTENANCE = Calendar(
    "maintenance",
    CalendarKind.BLACKOUT,
    (Weekly(time(2), time(3), frozenset({6})),),
    scope=EVERYTHING,
)
DEFERRING = replace(MAINTENANCE, otherwise=Otherwise.DEFER)


async def make(harness: WorkspaceHarness, calendar: Calendar = MAINTENANCE) -> CalendarId:
    return await calendars.create(harness.database, Scope(harness.workspace, ADA), calendar)


def next_at(harness: WorkspaceHarness, job: JobId) -> datetime:
    found: datetime = harness.timer(job, "next_at")[0]
    return found


@pytest.mark.requirement("S1-EC-4")
@pytest.mark.parametrize("is_first", [True, False], ids=["calendar first", "job first"])
async def test_a_blackout_of_the_whole_workspace_holds_every_job(
    harness: WorkspaceHarness, is_first: bool
) -> None:
    """A plain job, which would fire on the fast path."""
    if is_first:
        await make(harness)
    job = await harness.job("nightly", NIGHTLY)
    if not is_first:
        await make(harness)
    harness.clock.set(SATURDAY)
    assert await harness.tick() == 1
    assert await harness.run_once() == [job]
    ahead = await job_search.ahead(harness.database, Scope(harness.workspace), job, 2)
    assert ahead.times[0].planned_for == SUNDAY + timedelta(days=1)
    reported = await explain.explain_instant(harness.database, Scope(harness.workspace), job, SUNDAY)
    assert 'the calendar "maintenance", which applies to all jobs of the workspace, is closed then' in (
        reported.explanation.sentence
    )
    harness.clock.set(SUNDAY)
    await harness.tick()
    assert harness.runs(job, "status, skip_reason") == [("succeeded", None), ("skipped", "blackout")]
    reported = await explain.explain_instant(harness.database, Scope(harness.workspace), job, SUNDAY)
    assert 'because the calendar "maintenance", which applies to all jobs' in reported.explanation.sentence


async def test_a_deferring_one_moves_timers_and_agenda(harness: WorkspaceHarness) -> None:
    job = await harness.job("nightly", Cron("30 2 * * 0"))
    made = await make(harness, DEFERRING)
    assert harness.timer(job, "due_at, next_at") == (OPENS, OPENS)
    found = await agenda.load_agenda(
        harness.database, Scope(harness.workspace), start=SATURDAY, end=datetime(2027, 1, 18, tzinfo=UTC)
    )
    assert [each.line.first.due_at for each in found.items] == [OPENS]
    await calendars.delete(harness.database, Scope(harness.workspace, ADA), made)
    assert next_at(harness, job) == SUNDAY


@pytest.mark.requirement("S1-EC-4")
@pytest.mark.parametrize(
    "scope, fields",
    [
        (CalendarScope(types=frozenset({"python"})), {}),
        (CalendarScope(tags=frozenset({"billing", "other"})), {"tags": ("billing",)}),
        (CalendarScope(queues=frozenset({"slow"})), {"queue": "slow"}),
        (CalendarScope(hosts=frozenset({"db1"})), {"target": Target(TargetKind.HOST, "db1")}),
    ],
    ids=["type", "tag", "queue", "host"],
)
async def test_a_scope_names_types_tags_queues_or_hosts(
    harness: WorkspaceHarness, scope: CalendarScope, fields: dict[str, Any]
) -> None:
    await register_host(harness.database, worker_principal(harness.workspace), "db1")
    inside = await harness.job("inside", Cron("30 2 * * 0"), **fields)
    definition = Definition("outside", Spec(Cron("30 2 * * 0"), "http", tags=("x",)))
    outside = (await jobs.create(harness.database, Scope(harness.workspace, ADA), definition)).id
    made = await make(harness, replace(DEFERRING, scope=scope))
    assert (next_at(harness, inside), next_at(harness, outside)) == (OPENS, SUNDAY)
    users = await calendars.users(harness.database, Scope(harness.workspace), made)
    assert users.items == ((inside, "inside"),)
    again = await harness.job("inside too", Cron("30 2 * * 0"), **fields)
    assert next_at(harness, again) == OPENS


async def test_a_change_of_scope_plans_the_jobs_of_both_again(harness: WorkspaceHarness) -> None:
    old = await harness.job("old", Cron("30 2 * * 0"), tags=("old",))
    new = await harness.job("new", Cron("30 2 * * 0"), tags=("new",))
    made = await make(harness, replace(DEFERRING, scope=CalendarScope(tags=frozenset({"old"}))))
    assert (next_at(harness, old), next_at(harness, new)) == (OPENS, SUNDAY)
    scope = Scope(harness.workspace, ADA)
    changed = {"scope": CalendarScope(tags=frozenset({"new"}))}
    assert await calendars.change(harness.database, scope, made, changed) == 2
    assert (next_at(harness, old), next_at(harness, new)) == (SUNDAY, OPENS)
    assert await calendars.change(harness.database, scope, made, {"scope": None}) == 1
    assert (next_at(harness, old), next_at(harness, new)) == (SUNDAY, SUNDAY)


async def test_a_job_enters_and_leaves_a_scope_by_its_tags(harness: WorkspaceHarness) -> None:
    job = await harness.job("nightly", Cron("30 2 * * 0"))
    await make(harness, replace(DEFERRING, scope=CalendarScope(tags=frozenset({"billing"}))))
    spec = Spec(Cron("30 2 * * 0"), "python", tags=("billing",))
    scope = Scope(harness.workspace, ADA)
    await job_edits.edit(harness.database, scope, job, Definition("nightly", spec))
    assert next_at(harness, job) == OPENS
    await job_edits.edit(harness.database, scope, job, Definition("nightly", replace(spec, tags=())))
    assert next_at(harness, job) == SUNDAY


async def test_another_workspace_is_not_held(harness: WorkspaceHarness) -> None:
    outsider = WorkspaceId(uuid4())
    harness.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', %s)",
        [outsider, harness.clock.now()],
    )
    await make(harness)
    definition = Definition("theirs", Spec(NIGHTLY, "python"))
    theirs = (await jobs.create(harness.database, Scope(outsider, EVE), definition)).id
    mine = await harness.job("mine", NIGHTLY)
    for at in (SATURDAY, SUNDAY):
        harness.clock.set(at)
        await harness.tick()
        await harness.run_once()
    assert harness.runs(theirs, "status") == [("succeeded",), ("succeeded",)]
    assert harness.runs(mine, "status") == [("succeeded",), ("skipped",)]


async def test_a_named_calendar_with_a_scope_counts_once_and_needs_no_force_for_its_scope(
    harness: WorkspaceHarness,
) -> None:
    made = await make(harness, DEFERRING)
    job = await harness.job("nightly", Cron("30 2 * * 0"), calendars=(made,))
    await harness.job("other", Cron("30 2 * * 0"))
    assert (await calendars.get(harness.database, harness.workspace, made)).users == 1
    assert next_at(harness, job) == OPENS
    scope = Scope(harness.workspace, ADA)
    assert len((await calendars.users(harness.database, scope, made)).items) == 2
    await job_edits.edit(
        harness.database, scope, job, Definition("nightly", Spec(Cron("30 2 * * 0"), "python"))
    )
    await calendars.delete(harness.database, scope, made)
    assert next_at(harness, job) == SUNDAY


async def test_the_rules_of_all_scopes_together_are_bounded(harness: WorkspaceHarness) -> None:
    days = tuple(
        Days(datetime(2027 + n // 300, 1 + n % 12, 1 + n % 28, tzinfo=UTC).date()) for n in range(600)
    )
    await make(harness, replace(MAINTENANCE, rules=days))
    with pytest.raises(Invalid, match="1,200 rules together") as refused:
        await make(harness, replace(MAINTENANCE, name="second", rules=days))
    assert refused.value.pointer == "/rules"
