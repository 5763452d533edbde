"""Ticking: planned times become runs, once each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.schedule import Cron, Interval, Manual
from foliot.services.jobs import job_status, jobs
from foliot.services.scheduling.tick import TickResult, tick
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import ANA, TEST
from tests.services.service_driver import ServiceDriver, check_ledger

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


@pytest.mark.requirement("S0-10", "S0-17")
async def test_a_due_timer_becomes_a_run_and_moves_on(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    created = await jobs.create(
        database, Scope(workspace, TEST), Definition("beat", Spec(Interval(MINUTE), "python"))
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


@pytest.mark.requirement("S3-8")
async def test_a_second_planned_time_is_skipped_while_the_first_is_live(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    await jobs.create(database, Scope(workspace, TEST), Definition("beat", Spec(Cron("* * * * *"), "python")))
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


@pytest.mark.requirement("S0-22", "S0-20")
async def test_rules_that_cannot_be_read_stop_their_own_job_and_no_other(
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = await jobs.create(
        database, Scope(workspace, TEST), Definition("bad", Spec(Cron("* * * * *"), "python"))
    )
    good = await jobs.create(
        database, Scope(workspace, TEST), Definition("good", Spec(Cron("* * * * *"), "python"))
    )
    owner.execute("UPDATE foliot.timers SET spec = %s WHERE job_id = %s", ('{"schedule": 7}', bad.id))
    for _ in range(12):
        clock.advance(MINUTE)
        await tick(database)
    status = "SELECT id, status FROM foliot.jobs"
    assert dict(owner.execute(status).fetchall()) == {bad.id: "failed", good.id: "active"}
    records = "SELECT status, skip_reason FROM foliot.runs WHERE job_id = %s"
    assert owner.execute(records, (bad.id,)).fetchall() == [("skipped", "scheduler_error")] * 3
    audited = "SELECT action, object_id FROM foliot.audit WHERE actor = 'engine' ORDER BY action"
    assert owner.execute(audited).fetchall() == [
        ("job.auto_failed", str(bad.id)),
        *[("job.not_planned", str(bad.id))] * 3,
    ]
    logged = [each.message for each in caplog.records if each.message.startswith("job.")]
    assert logged == ["job.not_planned"] * 3 + ["job.stopped"]


@pytest.mark.requirement("S0-11", "S0-12", "S0-13", "S0-19", "S0-20", "C-2")
async def test_a_job_says_what_its_schedule_did_last(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    scope = Scope(workspace, TEST)
    job_id = (await jobs.create(database, scope, Definition("beat", Spec(Cron("* * * * *"), "python")))).id

    async def fire() -> tuple[str | None, int, int]:
        clock.advance(MINUTE)
        await tick(database)
        job = await jobs.get(database, workspace, job_id)
        newest = owner.execute("SELECT id FROM foliot.runs ORDER BY number DESC LIMIT 1").fetchone()
        assert newest is not None
        assert job.last_fire_run_id == newest[0]
        return job.last_fire_status, job.fire_count, job.schedule_error_count

    assert (await jobs.get(database, workspace, job_id)).last_fire_status is None
    assert await fire() == ("queued", 1, 0)
    assert await fire() == ("skipped", 1, 0)
    spec = owner.execute("SELECT spec FROM foliot.timers").fetchone()
    assert spec is not None
    owner.execute("UPDATE foliot.timers SET spec = %s", ('{"schedule": 7}',))
    assert await fire() == ("scheduler_failed", 1, 1)
    owner.execute("UPDATE foliot.timers SET spec = %s", spec)
    assert await fire() == ("skipped", 1, 1)


async def a_bad_one_between_two(
    database: Database, workspace: WorkspaceId, schedule: Cron | Interval
) -> tuple[JobId, list[JobId]]:
    made = [
        (await jobs.create(database, Scope(workspace, TEST), Definition(name, Spec(schedule, "python")))).id
        for name in ("first", "bad", "last")
    ]
    return made[1], [made[0], made[2]]


def refuse_runs_of(
    owner: psycopg.Connection[Any], job_id: JobId, *, when: str = "NEW.status IS NULL"
) -> None:
    """PostgreSQL itself takes no run of this job."""
    owner.execute(
        "CREATE FUNCTION foliot.refuse() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '22000'; END $$"
    )
    owner.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON foliot.runs FOR EACH ROW"
        f" WHEN (NEW.job_id = '{job_id}' AND {when}) EXECUTE FUNCTION foliot.refuse()"
    )


def records_of(owner: psycopg.Connection[Any], job_id: JobId) -> list[tuple[str | None, str | None]]:
    asked = "SELECT status, skip_reason FROM foliot.runs WHERE job_id = %s ORDER BY number"
    return owner.execute(asked, (job_id,)).fetchall()


@pytest.mark.parametrize("schedule", [Cron("* * * * *"), Interval(MINUTE)])
async def test_a_job_that_the_database_refuses_is_set_aside_and_the_others_fire(
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    schedule: Cron | Interval,
) -> None:
    bad, good = await a_bad_one_between_two(database, workspace, schedule)
    refuse_runs_of(owner, bad)
    clock.advance(MINUTE)
    assert await tick(database) == TickResult(looked_at=3, recorded=3)
    assert [records_of(owner, each) for each in good] == [[(None, None)]] * 2
    assert records_of(owner, bad) == [("skipped", "scheduler_error")]
    assert owner.execute("SELECT errors, due_at FROM foliot.timers WHERE job_id = %s", (bad,)).fetchone() == (
        1,
        clock.now() + MINUTE,
    )
    assert (await tick(database)).looked_at == 0
    clock.advance(20 * MINUTE)
    for _ in range(10):
        await tick(database)
        clock.advance(5 * MINUTE)
    assert records_of(owner, bad) == [("skipped", "scheduler_error")] * 3
    statuses = dict(owner.execute("SELECT id, status FROM foliot.jobs").fetchall())
    assert statuses == {bad: "failed", good[0]: "active", good[1]: "active"}
    check_ledger(owner)


async def test_a_job_that_fails_by_its_schedule_keeps_its_ready_runs_for_the_resume(
    driver: ServiceDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    await driver.tick(MINUTE)

    def broken(*_: object) -> None:
        raise ArithmeticError("no time today")

    with monkeypatch.context() as broke:
        broke.setattr("foliot.services.scheduling.tick.plan", broken)
        for _ in range(3):
            await driver.tick(10 * MINUTE)
    assert driver.status() == "failed"
    assert await driver.claim() == []
    assert driver.timer("live", "waiting") == (0, 1)
    await job_status.resume(driver.database, Scope(driver.workspace, ANA), job_id)
    assert len(await driver.claim()) == 1
    driver.balance()


async def test_no_job_is_blamed_for_a_schema_that_does_not_fit(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    plain = await jobs.create(
        database, Scope(workspace, TEST), Definition("plain", Spec(Interval(MINUTE), "python"))
    )
    upstream = await jobs.create(database, Scope(workspace, TEST), Definition("up", Spec(Manual(), "python")))
    spec, edge = Spec(Interval(MINUTE), "python"), Edge(upstream.id, mode=EdgeMode.GATE)
    gated = await jobs.create(database, Scope(workspace, TEST), Definition("gated", spec, depends_on=(edge,)))
    owner.execute("ALTER TABLE foliot.dependencies RENAME COLUMN consumed_run_id TO used_run_id")
    clock.advance(MINUTE)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        await tick(database)
    assert records_of(owner, plain.id) == [(None, None)]
    assert records_of(owner, gated.id) == []
    owner.execute("ALTER TABLE foliot.dependencies RENAME COLUMN used_run_id TO consumed_run_id")
    await tick(database)
    assert records_of(owner, gated.id) == [("skipped", "dependency_missing")]


async def test_a_job_that_cannot_even_be_set_aside_stops_nobody(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> None:
    bad, good = await a_bad_one_between_two(database, workspace, Cron("* * * * *"))
    refuse_runs_of(owner, bad, when="true")
    clock.advance(MINUTE)
    assert await tick(database) == TickResult(looked_at=3, recorded=2)
    assert [records_of(owner, each) for each in good] == [[(None, None)]] * 2
    check_ledger(owner)


@pytest.mark.parametrize(
    "broken",
    [
        """spec = '{"schedule": {"kind": "cron", "expr": 7}, "type": "python"}'""",
        """spec = '{"schedule":{"kind":"lunar","phase":"full"},"type":"python"}'""",
        """spec = '{"schedule":{"kind":"interval","every":1e300},"type":"python"}'""",
        """spec = '{"schedule":{"anchor":"2026-01-01T00:00:00","every":60,"kind":"interval"},"type":"python"}'""",
        """spec = replace(spec, '"type":"python"', '"type":"py\\u0000"')""",
        """spec = replace(spec, '"type":"python"', '"priority":99999,"type":"python"')""",
        "spec = repeat('[', 100000)",
        "spec = 'no JSON at all'",
        "cursor_at = '-infinity'",
        "skip_next = 'why not', ending = 'explode'",
    ],
)
@pytest.mark.parametrize("schedule", [Cron("* * * * *"), Interval(MINUTE)])
async def test_a_timer_that_cannot_be_read_is_set_aside_in_the_pass_that_meets_it(
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    schedule: Cron | Interval,
    broken: str,
) -> None:
    bad, good = await a_bad_one_between_two(database, workspace, schedule)
    owner.execute(f"UPDATE foliot.timers SET {broken} WHERE job_id = '{bad}'")
    clock.advance(MINUTE)
    assert await tick(database) == TickResult(looked_at=3, recorded=3)
    assert [records_of(owner, each) for each in good] == [[(None, None)]] * 2
    assert records_of(owner, bad) == [("skipped", "scheduler_error")]
    assert (await tick(database)).looked_at == 0
    check_ledger(owner)
