"""Warnings about schedules and policies that are allowed, but often a mistake."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.policy import Limits, Overlap, OverlapRule
from foliot.domain.schedule import Cron, Interval, Manual, Schedule, Timetable
from foliot.domain.schedule_lint import lint
from foliot.services.jobs import jobs
from foliot.testing.fixtures import TEST
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
DAILY = Cron("30 9 * * *")
REPORTS = map("team {}".format, count(1))
CONCURRENT = Overlap(OverlapRule.CONCURRENT)


async def warnings(harness: WorkspaceHarness, definition: Definition) -> tuple[str, ...]:
    made = await jobs.create(harness.database, Scope(harness.workspace, TEST), definition, with_warnings=True)
    return made.warnings


def make(schedule: Schedule = DAILY, name: str | None = None, **spec: object) -> Definition:
    name = name or f"nightly report of {next(REPORTS)}"
    return Definition(name, Spec(schedule, "python", **spec))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("definition", "piece"),
    [
        (make(Interval(timedelta(seconds=5))), "every 5 s, 17,280 times a day"),
        (make(Cron("*/5 * * * * *", seconds=True)), "several times a minute"),
        (make(limits=Limits(timeout=timedelta(hours=48))), "timeout is 48 hours"),
        (make(overlap=CONCURRENT), "overlap without a limit"),
        (
            replace(make(), config={"headers": {"Api-Key": "s3cret"}}),
            '"Api-Key" in the config looks like a secret',
        ),
        (make(name="test 2"), 'name "test 2" does not say'),
        (make(Cron("0 9 29 2 *")), "fires first on 2028-02-29"),
        (make(Cron("30 2 * * *", "Europe/Paris")), "Clock changes touch it"),
        (make(Cron("0 0 */2 * MON")), "crontab(5)"),
    ],
)
@pytest.mark.requirement("S2-38")
async def test_a_likely_mistake_is_pointed_out(
    harness: WorkspaceHarness, definition: Definition, piece: str
) -> None:
    assert [piece in said for said in await warnings(harness, definition)].count(True) == 1


async def test_a_usual_job_has_no_warnings(harness: WorkspaceHarness) -> None:
    assert await warnings(harness, make()) == ()
    assert await warnings(harness, make(Cron("0 9 * * 1-5", "Europe/Paris"))) == ()
    assert await warnings(harness, make(Manual())) == ()
    assert await warnings(harness, make(overlap=CONCURRENT, concurrency_key="db")) == ()


def test_the_name_of_a_stored_secret_is_not_taken_for_a_secret() -> None:
    named = {"key": {"secret": "model-key"}, "headers": {"Authorization": {"secret": "crm"}}}
    now = datetime(2026, 11, 16, tzinfo=UTC)
    assert lint(replace(make(), config=named), Timetable(DAILY), now) == ()
    beside = {**named, "token": "s3cret"}
    assert len(lint(replace(make(), config=beside), Timetable(DAILY), now)) == 1


@pytest.mark.requirement("S2-38")
async def test_a_crowded_minute_comes_with_a_quieter_one(harness: WorkspaceHarness) -> None:
    for n in range(20):
        await harness.job(f"crowd {n}", Cron("0 9 * * *"))
    [said] = await warnings(harness, make(Cron("0 9 * * *")))
    assert "20 other jobs fire at minute 00" in said
    assert "Minute 01 has 0" in said
    assert await warnings(harness, make(Cron("7 9 * * *"))) == ()


@pytest.mark.requirement("S2-38")
async def test_an_address_that_many_jobs_call_is_pointed_out(harness: WorkspaceHarness) -> None:
    scope = Scope(harness.workspace, TEST)
    call = Definition("call", Spec(DAILY, "http"), config={"url": "https://example.com/hook"})
    for n in range(10):
        await jobs.create(harness.database, scope, replace(call, name=f"call {n}"))
    said = await warnings(harness, call)
    assert ["other jobs call this address" in each for each in said] == [True]
    other = replace(call, name="other", config={"url": "https://example.com/other"})
    assert await warnings(harness, other) == ()


async def test_a_second_job_of_the_same_name_is_pointed_out(harness: WorkspaceHarness) -> None:
    assert await warnings(harness, make(name="nightly report")) == ()
    [said] = await warnings(harness, make(name="nightly report"))
    assert said.startswith('Another job is named "nightly report" too.')
    assert await warnings(harness, make(name="nightly reports")) == ()
