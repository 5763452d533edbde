"""Usage of runs: summed in the settlement's own transaction, and budgets that warn, pause a job or close a workspace's schedules."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import RunId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import Failed, HandedBack, Outcome, Succeeded
from foliot.domain.policy import Backoff, Overlap, OverlapRule, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval, Once
from foliot.domain.usage import Budget, BudgetAction, BudgetPeriod
from foliot.services.jobs import job_status
from foliot.services.runs import explain, history, run_control, usage
from foliot.services.settlement import report as reporting
from foliot.services.settlement.report import Report, report
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.fixtures import ANA
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
BOOM = Failed(RunError("boom", "It broke."))
USD = Budget("usd", Decimal(10))


def spent(driver: ServiceDriver, run: Claimed, outcome: Outcome | None = None, **units: str) -> Report:
    amounts = {unit: Decimal(amount) for unit, amount in units.items()}
    return Report(run.run_id, run.job_id, run.fence, driver.worker, outcome or Succeeded(), None, amounts)


async def work(driver: ServiceDriver, outcome: Outcome | None = None, **units: str) -> list[RunId]:
    """Let a minute pass, and report everything that is ready with this usage."""
    await driver.tick(MINUTE)
    runs = await driver.claim()
    done = [spent(driver, run, outcome, **units) for run in runs]
    assert len(await report(driver.database, done)) == len(runs)
    return [run.run_id for run in runs]


def days(driver: ServiceDriver, subject: Any) -> dict[str, Decimal]:
    return dict(driver.sql("SELECT unit, amount FROM foliot.usage_days WHERE subject_id = %s", subject))


def notices(driver: ServiceDriver) -> list[tuple[str, str]]:
    found = driver.sql("SELECT event, facts ->> 'reason' FROM foliot.notices ORDER BY seq")
    driver.owner.execute("DELETE FROM foliot.notices")
    return found


@pytest.mark.requirement("S3-22")
async def test_usage_of_attempts_is_summed_exactly_by_run_job_and_workspace(driver: ServiceDriver) -> None:
    job = await driver.job(Interval(60 * MINUTE), retry=Retry(1, Backoff.FIXED, base=MINUTE, past_next=True))
    other = await driver.job(Interval(60 * MINUTE))
    driver.clock.advance(59 * MINUTE)
    first = await work(driver, BOOM, usd="0.1", tokens="7")
    again = await work(driver, usd="0.000000002")
    assert again[0] in first
    scope = Scope(driver.workspace, ANA)
    run = await history.run(driver.database, scope, again[0])
    assert run.usage == {"usd": Decimal("0.100000002"), "tokens": Decimal(7)}
    assert days(driver, job) == run.usage
    assert days(driver, other) == {"usd": Decimal("0.1"), "tokens": Decimal(7)}
    assert days(driver, driver.workspace) == {"usd": Decimal("0.200000002"), "tokens": Decimal(14)}
    month = await usage.month_usage(driver.database, scope)
    assert month.totals == days(driver, driver.workspace)
    assert {each.id for each in month.jobs if each.unit == "usd"} == {job, other}
    of_job = await usage.month_usage(driver.database, scope, job_id=job, unit="usd")
    assert of_job.totals == {"usd": Decimal("0.100000002")}
    driver.balance()


async def test_a_run_with_usage_stays_on_the_fast_path_and_one_without_asks_nothing(
    driver: ServiceDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await driver.job()
    monkeypatch.setattr(reporting, "_settle_one_by_one", None)
    await work(driver, tokens="5")
    assert days(driver, driver.workspace) == {"tokens": Decimal(5)}
    monkeypatch.setattr(reporting, "record_reported_usage", None)
    await work(driver)
    assert days(driver, driver.workspace) == {"tokens": Decimal(5)}


async def test_a_late_or_repeated_report_is_not_counted(driver: ServiceDriver) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    done = spent(driver, run, tokens="5")
    assert await report(driver.database, [done, done]) == {run.run_id}
    assert await report(driver.database, [done]) == frozenset()
    assert await report(driver.database, [done._replace(fence=run.fence - 1)]) == frozenset()
    assert days(driver, driver.workspace) == {"tokens": Decimal(5)}


async def test_what_a_handed_back_attempt_used_counts(driver: ServiceDriver) -> None:
    await driver.job(Interval(60 * MINUTE))
    driver.clock.advance(59 * MINUTE)
    await work(driver, HandedBack(), tokens="5")
    [run_id] = await work(driver, tokens="2")
    assert (await history.run(driver.database, Scope(driver.workspace, ANA), run_id)).usage == {
        "tokens": Decimal(7)
    }


@pytest.mark.requirement("S3-22")
async def test_a_budget_of_a_job_warns_then_pauses_it_until_the_month_ends(driver: ServiceDriver) -> None:
    job = await driver.job(budgets=(USD,))
    await work(driver, usd="4")
    assert notices(driver) == []
    await work(driver, usd="4")
    assert notices(driver) == [("budget_warning", "8 of 10 usd used this month (UTC).")]
    await work(driver, usd="1")
    assert notices(driver) == []
    await work(driver, usd="1.5")
    assert driver.status() == "paused"
    [(reason, until)] = driver.sql("SELECT status_reason, paused_until FROM foliot.jobs")
    assert reason == "Its budget is used up: 10.5 of 10 usd used this month (UTC)."
    now = driver.clock.now()
    assert until == (
        now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)
    ).replace(day=1)
    [(event, facts)] = driver.sql("SELECT event, facts FROM foliot.notices")
    assert (event, facts["budget"]) == ("job_auto_paused", "usd")
    assert driver.audited()[-1] == "job.auto_paused"
    why = await explain.explain_instant(driver.database, Scope(driver.workspace), job, now + MINUTE)
    assert "Its budget is used up: 10.5 of 10 usd" in why.explanation.sentence
    driver.clock.advance(until - now)
    assert await job_status.resume_due(driver.database) == 1
    await work(driver, usd="1")
    assert driver.status() == "active"
    month = await usage.month_usage(driver.database, Scope(driver.workspace, ANA), job_id=job)
    assert (month.totals, month.budgets[0].spent) == ({"usd": Decimal(1)}, Decimal(1))
    driver.balance()


async def test_a_month_budget_extends_the_pause_that_a_day_budget_made(driver: ServiceDriver) -> None:
    day = Budget("usd", Decimal(5), BudgetPeriod.DAY, None)
    month = Budget("usd", Decimal(10), BudgetPeriod.MONTH, None)
    await driver.job(budgets=(day, month), overlap=Overlap(OverlapRule.CONCURRENT, 3))
    driver.clock.advance(MINUTE)
    await driver.tick()
    await driver.tick(MINUTE)
    first, second = await driver.claim(2)
    midnight = driver.clock.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    await report(driver.database, [spent(driver, first, usd="6")])
    paused = "SELECT paused_until, status_reason FROM foliot.jobs"
    assert driver.sql(paused) == [(midnight, "Its budget is used up: 6 of 5 usd used today (UTC).")]
    since = driver.sql("SELECT status_at FROM foliot.jobs")
    notices(driver)
    await report(driver.database, [spent(driver, second, usd="6")])
    end = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
    assert driver.sql(paused) == [(end, "Its budget is used up: 12 of 10 usd used this month (UTC).")]
    assert driver.sql("SELECT status_at FROM foliot.jobs") == since
    assert notices(driver) == [("budget_exceeded", "12 of 10 usd used this month (UTC).")]
    assert driver.audited()[-2:] == ["job.auto_paused", "job.auto_paused"]
    driver.clock.advance(midnight - driver.clock.now())
    assert await job_status.resume_due(driver.database) == 0
    driver.balance()


async def test_a_budget_leaves_a_pause_without_an_end_alone(driver: ServiceDriver) -> None:
    job = await driver.job(budgets=(USD,))
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    await job_status.pause(driver.database, Scope(driver.workspace, ANA), job, reason="vacation")
    await report(driver.database, [spent(driver, run, usd="12")])
    assert driver.sql("SELECT paused_until, status_reason FROM foliot.jobs") == [(None, "vacation")]


async def test_a_person_resumes_a_job_and_its_next_usage_pauses_it_again(driver: ServiceDriver) -> None:
    job = await driver.job(budgets=(USD,))
    await work(driver, usd="12")
    assert driver.status() == "paused"
    await job_status.resume(driver.database, Scope(driver.workspace, ANA), job)
    await work(driver)
    assert driver.status() == "active"
    await work(driver, usd="1")
    assert driver.status() == "paused"


async def test_a_failed_attempt_over_budget_waits_with_its_retry_for_the_resume(
    driver: ServiceDriver,
) -> None:
    retry = Retry(1, Backoff.FIXED, base=MINUTE, past_next=True)
    job = await driver.job(Interval(60 * MINUTE), budgets=(USD,), retry=retry)
    driver.clock.advance(59 * MINUTE)
    await work(driver, BOOM, usd="10")
    assert driver.status() == "paused"
    driver.clock.advance(5 * MINUTE)
    assert await driver.claim() == []
    driver.balance()
    await job_status.resume(driver.database, Scope(driver.workspace, ANA), job)
    assert len(await driver.claim()) == 1
    driver.balance()


async def test_a_one_shot_over_budget_is_completed_and_a_budget_that_only_warns_pauses_nothing(
    driver: ServiceDriver,
) -> None:
    await driver.job(Once(driver.clock.now() + MINUTE), budgets=(USD,))
    await work(driver, usd="11")
    assert driver.status() == "completed"
    driver.owner.execute("DELETE FROM foliot.notices")
    warns = Budget("usd", Decimal(10), BudgetPeriod.DAY, None, BudgetAction.WARN)
    job = await driver.job(budgets=(warns,))
    await work(driver, usd="11")
    await work(driver, usd="11")
    assert notices(driver) == [("budget_exceeded", "11 of 10 usd used today (UTC).")]
    assert driver.sql("SELECT status FROM foliot.jobs WHERE id = %s", job) == [("active",)]


@pytest.mark.requirement("S3-22")
async def test_a_budget_of_the_workspace_closes_its_schedules_until_the_day_ends(
    driver: ServiceDriver,
) -> None:
    scope = Scope(driver.workspace, ANA)
    job = await driver.job(overlap=Overlap(OverlapRule.CONCURRENT))
    await usage.set_budgets(driver.database, scope, [Budget("usd", Decimal(3), BudgetPeriod.DAY, 0.5)])
    await work(driver, usd="2")
    await work(driver, usd="2")
    assert [event for event, _ in notices(driver)] == ["budget_warning", "budget_exceeded"]
    assert await work(driver) == []
    assert driver.runs()[-1] == ("schedule", "skipped", "budget")
    before = await explain.explain_instant(driver.database, scope, job, driver.clock.now())
    assert "a budget of the workspace was used up" in before.explanation.sentence
    ahead = await explain.explain_instant(driver.database, scope, job, driver.clock.now() + MINUTE)
    assert "a budget of the workspace is used up" in ahead.explanation.sentence
    await run_control.run_now(driver.database, scope, job)  # a person decides otherwise
    assert len(await driver.claim()) == 1
    tomorrow = driver.clock.now().replace(hour=0, minute=0, second=0) + timedelta(days=1)
    assert (await usage.list_budgets(driver.database, scope)).closed_until == tomorrow
    higher = await usage.set_budgets(driver.database, scope, [Budget("usd", Decimal(5), BudgetPeriod.DAY)])
    assert higher.closed_until is None
    assert len(await work(driver, usd="1")) == 1
    assert await work(driver) == []
    driver.clock.advance(tomorrow - driver.clock.now())
    assert len(await work(driver)) >= 1


async def test_usage_on_both_sides_of_midnight_belongs_to_two_months(driver: ServiceDriver) -> None:
    """The month is that of UTC, and of the end of the attempt: the second run begins before midnight."""
    scope = Scope(driver.workspace, ANA)
    await driver.job(Interval(MINUTE), overlap=Overlap(OverlapRule.CONCURRENT), budgets=(USD,))
    await usage.set_budgets(driver.database, scope, [USD])
    midnight = datetime(2027, 2, 1, tzinfo=UTC)
    driver.clock.advance(midnight - MINUTE - driver.clock.now())
    await driver.tick(timedelta(seconds=30))
    runs = await driver.claim()
    await driver.tick(timedelta(seconds=30) - timedelta(microseconds=1))
    runs += await driver.claim()
    first, second = runs
    await report(driver.database, [spent(driver, first, usd="9")])
    driver.clock.advance(timedelta(microseconds=1))
    assert driver.clock.now() == midnight
    await report(driver.database, [spent(driver, second, usd="9")])
    for month in (date(2027, 1, 1), date(2027, 2, 1)):
        found = await usage.month_usage(driver.database, scope, month=month)
        assert (found.totals, [each.day.month for each in found.days]) == ({"usd": Decimal(9)}, [month.month])
    assert (driver.status(), found.closed_until, found.budgets[0].spent) == ("active", None, Decimal(9))
    assert [event for event, _ in notices(driver)] == [
        "budget_warning"
    ] * 4  # of the job and the workspace, each month


async def test_a_second_budget_that_ends_sooner_does_not_open_schedules_earlier(
    driver: ServiceDriver,
) -> None:
    """A run that was started before uses up the day's tokens after the month's money."""
    scope = Scope(driver.workspace, ANA)
    job = await driver.job()
    budgets = [Budget("usd", Decimal(3)), Budget("tokens", Decimal(3), BudgetPeriod.DAY)]
    await usage.set_budgets(driver.database, scope, budgets)
    await work(driver, usd="4")
    month = (await usage.list_budgets(driver.database, scope)).closed_until
    await run_control.run_now(driver.database, scope, job)
    [run] = await driver.claim()
    await report(driver.database, [spent(driver, run, tokens="4")])
    assert (await usage.list_budgets(driver.database, scope)).closed_until == month


async def test_a_lower_budget_than_what_is_used_closes_schedules_at_once(driver: ServiceDriver) -> None:
    scope = Scope(driver.workspace, ANA)
    await driver.job()
    await work(driver, usd="4")
    made = await usage.set_budgets(driver.database, scope, [Budget("usd", Decimal(3))])
    assert made.closed_until is not None
    assert await work(driver) == []
    await usage.set_budgets(driver.database, scope, [])
    assert len(await work(driver)) == 1


async def test_usage_may_be_reported_for_a_run_that_has_ended(driver: ServiceDriver) -> None:
    scope = Scope(driver.workspace, ANA)
    await driver.job(budgets=(USD,))
    [run_id] = await work(driver)
    for _ in range(2):
        await usage.report(driver.database, scope, run_id, {"usd": Decimal(5), "calls": Decimal(0)})
    assert (await history.run(driver.database, scope, run_id)).usage == {"usd": Decimal(10)}
    assert driver.status() == JobStatus.PAUSED
    assert "run.usage_reported" in driver.audited()


async def test_made_up_units_beyond_a_hundred_are_dropped(
    driver: ServiceDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.services.settlement.usage_steps.MOST_UNITS", 3)
    await driver.job()
    await work(driver, a="1", b="1")
    await work(driver, b="1", c="1", d="1")
    assert days(driver, driver.workspace) == {"a": Decimal(1), "b": Decimal(2), "c": Decimal(1)}


@pytest.mark.parametrize(
    ("unit", "amount"), [("usd", "-1"), ("usd", "NaN"), ("USD", "1"), ("usd", "1e-10"), ("usd", "Infinity")]
)
async def test_the_database_refuses_what_is_no_usage(driver: ServiceDriver, unit: str, amount: str) -> None:
    await driver.job()
    [run_id] = await work(driver)
    with pytest.raises(Exception, match="run_usage"):
        driver.owner.execute(
            "INSERT INTO foliot.run_usage VALUES (%s, %s, 1, %s, %s)",
            [driver.workspace, run_id, unit, Decimal(amount)],
        )


async def test_the_usage_of_a_pruned_run_goes_and_the_sums_stay(driver: ServiceDriver) -> None:
    job = await driver.job()
    [run_id] = await work(driver, usd="1")
    scope = Scope(driver.workspace, ANA)
    await job_status.archive(driver.database, scope, job)
    await job_status.purge(driver.database, scope, job)
    assert driver.sql("SELECT count(*) FROM foliot.run_usage WHERE run_id = %s", run_id) == [(0,)]
    assert days(driver, job) == {}
    assert days(driver, driver.workspace) == {"usd": Decimal(1)}
