"""Successes that nothing follows from are settled by one statement: it leaves behind what deciding them one by one does."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Spec
from foliot.domain.ids import JobId, WorkerId
from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.policy import Backoff, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval, IntervalMode, Once, Schedule
from foliot.services.runs import run_control
from foliot.services.settlement import report as reporting
from foliot.services.settlement.report import Report, report
from foliot.storage.jobs.definitions import spec_text
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.fixtures import BEN
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
BOOM = Failed(RunError("boom", "It broke."))
CHAINED = Interval(MINUTE, mode=IntervalMode.FIXED_DELAY)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """The reports that were decided one by one."""
    seen: list[Report] = []
    decide = reporting._settle_one_by_one

    async def noted(tx: Any, reports: Any) -> Any:
        seen.extend(reports)
        return await decide(tx, reports)

    monkeypatch.setattr(reporting, "_settle_one_by_one", noted)
    return seen


def everything(driver: ServiceDriver, job_id: JobId) -> tuple[list[Any], list[Any], list[Any]]:
    """All that is stored of a job, but for what differs between any two jobs."""
    own = "'{job_id,id,run_id,last_run_id,last_fire_run_id,last_success_run_id,last_end_run_id,spec}'::text[]"
    return (
        driver.sql(f"SELECT to_jsonb(t) - {own} FROM foliot.timers AS t WHERE job_id = %s", job_id),
        driver.sql(
            f"SELECT to_jsonb(r) - {own} FROM foliot.runs AS r WHERE job_id = %s ORDER BY number", job_id
        ),
        driver.sql(
            f"SELECT to_jsonb(a) - {own} FROM foliot.attempts AS a JOIN foliot.runs AS r ON r.id = a.run_id"
            " WHERE r.job_id = %s ORDER BY a.number",
            job_id,
        ),
    )


def done(driver: ServiceDriver, run: Claimed, outcome: Outcome | None = None) -> Report:
    return Report(run.run_id, run.job_id, run.fence, driver.worker, outcome or Succeeded(), {"n": 1})


@pytest.mark.parametrize("tries", [1, 2])
async def test_a_plain_success_leaves_what_a_decided_one_leaves(
    driver: ServiceDriver, decided: list[Report], monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    retry = Retry(3, Backoff.FIXED, base=MINUTE, past_next=True)
    jobs = [await driver.job(Interval(60 * MINUTE), retry=retry) for _ in range(2)]
    await driver.tick(60 * MINUTE)
    for _ in range(tries - 1):
        await report(driver.database, [done(driver, run, BOOM) for run in await driver.claim()])
        driver.clock.advance(MINUTE)
    runs = {run.job_id: run for run in await driver.claim()}
    decided.clear()
    assert await report(driver.database, [done(driver, runs[jobs[0]])])
    assert decided == []
    with monkeypatch.context() as patched:
        patched.setattr("foliot.services.settlement.report.leases.settle_successes", _nothing)
        assert await report(driver.database, [done(driver, runs[jobs[1]])])
    assert len(decided) == 1
    assert everything(driver, jobs[0]) == everything(driver, jobs[1])
    driver.balance()


async def _nothing(*_: object) -> set[Any]:
    return set()


@pytest.mark.parametrize("schedule", [CHAINED, Once])
async def test_what_moves_on_with_its_run_is_decided(
    driver: ServiceDriver, decided: list[Report], schedule: Schedule | type[Once]
) -> None:
    wanted = Once(driver.clock.now() + MINUTE) if isinstance(schedule, type) else schedule
    await driver.job(wanted)
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    assert await report(driver.database, [done(driver, run)])
    assert len(decided) == 1


async def test_a_plain_success_under_an_old_fence_or_by_another_worker_is_refused(
    driver: ServiceDriver,
) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    mine = done(driver, run)
    assert not await report(driver.database, [mine._replace(fence=run.fence - 1)])
    assert not await report(driver.database, [mine._replace(worker_id=WorkerId(uuid4()))])
    assert await report(driver.database, [mine]) == {run.run_id}
    assert not await report(driver.database, [mine])


async def test_the_text_of_a_fixed_delay_is_what_the_statement_looks_for() -> None:
    assert '"mode":"fixed_delay"' in spec_text(Spec(CHAINED, "python"))
    assert '"mode":"fixed_delay"' not in spec_text(
        Spec(Interval(MINUTE), "python", tags=('"mode":"fixed_delay"',))
    )


async def test_listeners_hear_of_plain_successes(driver: ServiceDriver) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    driver.owner.execute(
        "INSERT INTO foliot.watches (workspace_id, since, until) VALUES (%s, 0, 'infinity')",
        [driver.workspace],
    )
    [run] = await driver.claim()
    await report(driver.database, [done(driver, run)])
    reported = driver.sql("SELECT kind, run_id, attempt FROM foliot.events WHERE kind = 'run.succeeded'")
    assert reported == [("run.succeeded", UUID(str(run.run_id)), 1)]


async def test_what_was_said_of_a_run_stays_though_it_succeeds(
    driver: ServiceDriver, decided: list[Report]
) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    await run_control.cancel_run(
        driver.database, Scope(driver.workspace, BEN), run.run_id, reason="wrong file"
    )
    assert await report(driver.database, [done(driver, run)])
    assert decided == []
    assert driver.sql("SELECT status, note FROM foliot.runs") == [("succeeded", "wrong file")]


@pytest.mark.parametrize(
    "change",
    [
        "waiting = 1",
        "ending = 'complete'",
        "failures_in_a_row = 1",
        "has_dependents = true",
        "has_incident = true",
        "status = 'paused'",
    ],
)
async def test_a_success_with_anything_to_decide_is_not_on_the_fast_path(
    driver: ServiceDriver, decided: list[Report], change: str
) -> None:
    for _ in range(2):
        await driver.job(Interval(60 * MINUTE))
    await driver.tick(60 * MINUTE)
    plain, other = await driver.claim()
    driver.owner.execute(f"UPDATE foliot.timers SET {change} WHERE job_id = %s".encode(), [other.job_id])
    assert len(await report(driver.database, [done(driver, plain), done(driver, other)])) == 2
    assert [each.job_id for each in decided] == [other.job_id]


async def test_a_success_ends_the_streak_of_earlier_batches(driver: ServiceDriver) -> None:
    await driver.job()
    for outcome, streak in ((BOOM, 1), (BOOM, 2), (Succeeded(), 0), (BOOM, 1)):
        await driver.tick(MINUTE)
        await driver.work(outcome)
        assert driver.timer("failures_in_a_row") == (streak,)
