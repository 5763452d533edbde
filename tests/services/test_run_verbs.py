"""Runs that people ask for, cancel, repeat and skip; and what each overlap policy makes of runs that meet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, IllegalMove, Invalid, NotFound
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.outcomes import Cancelled, Failed, Succeeded
from foliot.domain.policy import Backoff, Retry
from foliot.domain.run import RunError, effective_input
from foliot.domain.schedule import Cron, Interval, IntervalMode, Manual, Once, Otherwise, Window
from foliot.services.jobs import job_status
from foliot.services.runs import backfill as backfilling
from foliot.services.runs import run_control
from foliot.services.runs.run_control import CancelResult
from foliot.testing.fixtures import BEN, EVE
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
BOOM = Failed(RunError("boom", "It broke."))


async def run_now(driver: ServiceDriver, job_id: JobId, **options: Any) -> RunId:
    return await run_control.run_now(driver.database, Scope(driver.workspace, BEN), job_id, **options)


async def cancel(driver: ServiceDriver, run_id: RunId) -> CancelResult:
    return await run_control.cancel_run(driver.database, Scope(driver.workspace, BEN), run_id)


async def retry(driver: ServiceDriver, run_id: RunId, **options: Any) -> RunId:
    return await run_control.retry_run(driver.database, Scope(driver.workspace, BEN), run_id, **options)


async def backfill(
    driver: ServiceDriver,
    job_id: JobId,
    start: datetime,
    end: datetime,
    *,
    dry_run: bool = False,
    **options: Any,
) -> backfilling.Backfill:
    return await backfilling.backfill(
        driver.database, Scope(driver.workspace, BEN), job_id, start, end, dry_run=dry_run, **options
    )


def freeze(driver: ServiceDriver, scope: dict[str, Any] | None = None) -> UUID:
    freeze_id = uuid4()
    driver.owner.execute(
        "INSERT INTO foliot.freezes (workspace_id, id, scope, start_at, after, reason, created_by, created_at)"
        " VALUES (%s, %s, %s, %s, 'skip', 'stock-taking', 'ana', %s)",
        [driver.workspace, freeze_id, Jsonb(scope or {}), driver.clock.now(), driver.clock.now()],
    )
    return freeze_id


# Manual runs


async def test_a_manual_run_moves_neither_status_nor_schedule(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("0 0 * * *"), payload={"full": True, "from": "a"})
    before = driver.timer("cursor_at", "due_at", "next_at", "runs_created", "fire_count")
    run_id = await run_now(driver, job_id, input={"from": "b"})
    assert driver.timer("cursor_at", "due_at", "next_at", "runs_created", "fire_count") == before
    assert driver.sql("SELECT id, trigger, triggered_by, input, number FROM foliot.runs") == [
        (run_id, "manual", "ben", {"from": "b"}, 1)  # each attempt lays it over its payload
    ]
    assert await driver.work() == [run_id]
    assert (driver.status(), driver.audited()) == ("active", ["job.created", "run.requested"])
    driver.balance()


@pytest.mark.requirement("C-11", "S4-API-6")
@pytest.mark.parametrize("status", ["paused", "disabled", "completed", "pending"])
async def test_a_manual_run_is_done_whatever_the_job_is_doing(driver: ServiceDriver, status: str) -> None:
    later = driver.clock.now() + HOUR if status == "pending" else None
    job_id = await driver.job(Cron("* * * * *"), max_runs=1, start_at=later)
    if status == "completed":
        await driver.tick(MINUTE)
        await driver.work()
    if status in ("paused", "disabled"):
        stop = job_status.pause if status == "paused" else job_status.disable
        await stop(driver.database, Scope(driver.workspace, BEN), job_id)
    assert driver.status() == status
    run_id = await run_now(driver, job_id)
    assert await driver.work() == [run_id]
    assert driver.status() == status
    driver.balance()


async def test_a_manual_run_asked_for_in_a_pause_goes_before_the_held_ones(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue")
    await driver.tick(MINUTE)
    await job_status.pause(driver.database, Scope(driver.workspace, BEN), job_id)
    run_id = await run_now(driver, job_id)
    assert await driver.work() == [run_id]
    assert driver.runs() == [("schedule", "waiting", None), ("manual", "succeeded", None)]
    driver.balance()


async def test_a_manual_run_is_bound_by_no_window(driver: ServiceDriver) -> None:
    night = Window(time(22), time(23), otherwise=Otherwise.SKIP)
    job_id = await driver.job(Cron("* * * * *"), window=night)
    first, second = await run_now(driver, job_id), await run_now(driver, job_id)
    assert await driver.work() == [first]
    assert await driver.work() == [second]


async def test_a_freeze_is_named_and_overridden(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    freeze_id = freeze(driver)
    with pytest.raises(Conflict, match=f"{freeze_id} .stock-taking."):
        await run_now(driver, job_id)
    run_id = await run_now(driver, job_id, override=True)
    assert await driver.work() == [run_id]


async def test_a_freeze_of_other_jobs_holds_nothing_here(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    freeze(driver, {"queues": ["mail"]})
    run_id = await run_now(driver, job_id)
    assert await driver.work() == [run_id]


@pytest.mark.parametrize(
    ("planned", "manual", "status"), [(Succeeded(), BOOM, "completed"), (BOOM, Succeeded(), "failed")]
)
async def test_a_one_shot_ends_as_its_own_run_did_whatever_a_later_one_does(
    driver: ServiceDriver, planned: Any, manual: Any, status: str
) -> None:
    job_id = await driver.job(Once(driver.clock.now() + MINUTE))
    await driver.tick(MINUTE)
    await run_now(driver, job_id)
    assert len(await driver.work(planned)) == 1
    assert driver.status() == "active"
    assert len(await driver.work(manual)) == 1
    assert driver.status() == status
    driver.balance()


# Cancelling


async def test_a_run_that_no_worker_has_is_cancelled_at_once(driver: ServiceDriver) -> None:
    await driver.job(rule="queue")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    [(first,)] = driver.sql("SELECT run_id FROM foliot.ready")
    assert await cancel(driver, first) is CancelResult.ENDED
    assert [where for _, where, _ in driver.runs()] == ["cancelled", "ready"]
    driver.balance()


async def test_a_run_that_waits_is_cancelled_without_touching_the_live_one(driver: ServiceDriver) -> None:
    await driver.job(rule="queue")
    for _ in range(3):
        await driver.tick(MINUTE)
    [(second,)] = driver.sql("SELECT id FROM foliot.runs WHERE number = 2")
    await cancel(driver, second)
    assert [where for _, where, _ in driver.runs()] == ["ready", "cancelled", "waiting"]
    driver.balance()


async def test_a_run_under_way_is_asked_to_stop(driver: ServiceDriver) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    [run] = await driver.claim()
    assert await cancel(driver, run.run_id) is CancelResult.REQUESTED
    assert await cancel(driver, run.run_id) is CancelResult.REQUESTED
    assert driver.runs() == [("schedule", "running", None)]
    assert await driver.finish(run, Cancelled())
    with pytest.raises(IllegalMove, match="has already ended: it is cancelled"):
        await cancel(driver, run.run_id)
    driver.balance()


# Repeating


@pytest.mark.parametrize("outcome", [Succeeded(), BOOM])
async def test_a_finished_run_is_done_again_for_its_own_planned_time(
    driver: ServiceDriver, outcome: Any
) -> None:
    await driver.job(Cron("0 * * * *"))
    await driver.tick(HOUR)
    [run_id] = await driver.work(outcome)
    driver.clock.advance(10 * MINUTE)
    again = await retry(driver, run_id)
    assert await driver.work() == [again]
    assert driver.sql("SELECT trigger, retry_of, planned_for FROM foliot.runs WHERE id = %s", again) == [
        ("retry", run_id, driver.clock.now() - 10 * MINUTE)
    ]
    driver.balance()


async def test_a_retry_keeps_the_input_of_its_run_under_the_new_one(driver: ServiceDriver) -> None:
    job_id = await driver.job(Manual(), payload={"region": "eu", "size": 1})
    first = await run_now(driver, job_id, input={"size": 2, "day": "monday"})
    await driver.work()
    again = await retry(driver, first)
    await driver.work()
    changed = await retry(driver, again, input={"day": "tuesday"})
    [(kept,), (overlaid,)] = [
        driver.sql("SELECT input FROM foliot.runs WHERE id = %s", run)[0] for run in (again, changed)
    ]
    payload = {"region": "eu", "size": 1}
    assert effective_input(payload, kept) == {"region": "eu", "size": 2, "day": "monday"}
    assert effective_input(payload, overlaid) == {"region": "eu", "size": 2, "day": "tuesday"}
    with pytest.raises(Conflict, match="not ended"):
        await retry(driver, changed, input={"day": "friday"})


async def test_an_open_run_is_not_repeated(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    with pytest.raises(Conflict, match="not ended"):
        await retry(driver, await run_now(driver, job_id))


async def test_a_gap_is_not_one_run_to_repeat(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await job_status.pause(driver.database, Scope(driver.workspace, BEN), job_id)
    driver.clock.advance(HOUR)
    await job_status.resume(driver.database, Scope(driver.workspace, BEN), job_id)
    [(gap,)] = driver.sql("SELECT id FROM foliot.runs")
    with pytest.raises(Conflict, match="several planned times"):
        await retry(driver, gap)


# Skipping the next one


async def test_the_next_planned_time_is_skipped_once_with_its_reason(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    skipped = await run_control.skip_next(
        driver.database, Scope(driver.workspace, BEN), job_id, reason="holiday"
    )
    assert skipped.planned_at == driver.clock.now() + MINUTE
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    assert driver.runs() == [("schedule", "skipped", "operator"), ("schedule", "ready", None)]
    assert driver.sql("SELECT note FROM foliot.runs WHERE number = 1") == [("holiday",)]


async def test_a_skip_can_be_taken_back_until_it_has_happened(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await run_control.skip_next(driver.database, Scope(driver.workspace, BEN), job_id, reason="holiday")
    await run_control.undo_skip_next(driver.database, Scope(driver.workspace, BEN), job_id)
    await driver.tick(MINUTE)
    assert driver.runs() == [("schedule", "ready", None)]
    with pytest.raises(Conflict):
        await run_control.undo_skip_next(driver.database, Scope(driver.workspace, BEN), job_id)


async def test_there_is_no_next_time_to_skip_for_a_job_without_times(driver: ServiceDriver) -> None:
    job_id = await driver.job(Manual())
    with pytest.raises(Conflict, match="Nothing is planned"):
        await run_control.skip_next(driver.database, Scope(driver.workspace, BEN), job_id, reason="holiday")


# Backfill


async def test_a_backfill_makes_the_runs_its_dry_run_counted_and_none_twice(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("0 6 * * *"))
    end = driver.clock.now()
    start = end - timedelta(days=7)
    counted = await backfill(driver, job_id, start, end, dry_run=True)
    assert (counted.count, counted.first, counted.last) == (
        7,
        datetime(2027, 1, 9, 6, tzinfo=UTC),
        datetime(2027, 1, 15, 6, tzinfo=UTC),
    )
    assert driver.runs() == []
    made = await backfill(driver, job_id, start, end)
    assert (made.count, len(made.run_ids)) == (7, 7)
    assert (await backfill(driver, job_id, start - timedelta(days=1), end)).count == 1
    assert driver.sql("SELECT DISTINCT trigger, planned_for::time::text FROM foliot.runs") == [
        ("backfill", "06:00:00")
    ]
    done = [planned for _ in range(8) for [planned] in [await driver.work()]]
    assert done[:7] == list(made.run_ids)
    driver.balance()


async def test_a_backfill_leaves_alone_what_the_schedule_recorded(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    start = driver.clock.now() - 5 * MINUTE
    await driver.tick(MINUTE)
    await driver.tick(5 * MINUTE)  # late: the newest runs, the rest is a gap
    counted = await backfill(driver, job_id, start, driver.clock.now(), dry_run=True)
    assert counted.count == 6
    again = await backfill(driver, job_id, start, driver.clock.now(), dry_run=True, skipped=True)
    assert again.count == 6 + 4  # one ran, and the fifth of the gap is where the range ends


async def test_skipped_times_are_backfilled_once(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    start = driver.clock.now()
    await job_status.pause(driver.database, Scope(driver.workspace, BEN), job_id)
    driver.clock.advance(5 * MINUTE)
    await job_status.resume(driver.database, Scope(driver.workspace, BEN), job_id)
    end = driver.clock.advance(MINUTE / 2)
    assert (await backfill(driver, job_id, start, end)).count == 1  # the instant of creation itself
    assert (await backfill(driver, job_id, start, end, skipped=True)).count == 5
    assert (await backfill(driver, job_id, start, end, skipped=True)).count == 0
    driver.balance()


async def test_a_backfill_never_takes_a_time_that_is_still_to_be_recorded(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    start = driver.clock.now() - 2 * MINUTE
    driver.clock.advance(2 * MINUTE)  # two planned times are due and nobody has ticked
    assert (await backfill(driver, job_id, start, driver.clock.now())).count == 3
    with pytest.raises(Invalid, match="past times"):
        await backfill(driver, job_id, start, driver.clock.now() + MINUTE)


async def test_a_backfill_over_the_cap_is_refused_with_the_count(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("* * * * *"))
    start = driver.clock.now() - timedelta(days=1)
    assert (await backfill(driver, job_id, start, driver.clock.now(), dry_run=True)).count == 1440
    with pytest.raises(Invalid, match="1,440 planned times"):
        await backfill(driver, job_id, start, driver.clock.now())
    with pytest.raises(Invalid, match="More than 10,000"):
        await backfill(driver, job_id, start - timedelta(days=10), driver.clock.now(), dry_run=True)
    assert driver.runs() == []


async def test_a_backfill_respects_the_window_and_can_go_backwards(driver: ServiceDriver) -> None:
    morning = Window(time(6), time(8), otherwise=Otherwise.SKIP)
    job_id = await driver.job(Cron("0 * * * *"), window=morning)
    end = driver.clock.now()
    await backfill(driver, job_id, end - timedelta(days=1), end, oldest_first=False)
    assert [row[0].hour for row in driver.sql("SELECT planned_for FROM foliot.runs ORDER BY number")] == [
        8,
        7,
        6,
    ]
    assert await driver.claim() == []  # it is noon: they wait for the morning
    driver.clock.advance(timedelta(hours=18, minutes=30))
    assert len(await driver.work()) == 1
    assert [where for _, where, _ in driver.runs()] == ["succeeded", "ready", "waiting"]
    driver.balance()


@pytest.mark.parametrize("schedule", [Manual(), Interval(MINUTE, mode=IntervalMode.FIXED_DELAY)])
async def test_a_schedule_without_past_times_is_not_backfilled(driver: ServiceDriver, schedule: Any) -> None:
    job_id = await driver.job(schedule)
    with pytest.raises(Conflict, match="no times in the past"):
        await backfill(driver, job_id, driver.clock.now() - HOUR, driver.clock.now())


# Overlap, end to end


@pytest.mark.requirement("S1-EC-1", "S2-8")
@pytest.mark.parametrize(
    ("rule", "after_three", "after_the_first_ends"),
    [
        ("skip", ["running", "skipped", "skipped"], ["succeeded", "skipped", "skipped"]),
        ("queue", ["running", "waiting", "waiting"], ["succeeded", "ready", "waiting"]),
        ("queue_one", ["running", "waiting", "skipped"], ["succeeded", "ready", "skipped"]),
        ("cancel_running", ["running", "waiting", "skipped"], ["succeeded", "ready", "skipped"]),
        ("concurrent", ["running", "ready", "ready"], ["succeeded", "ready", "ready"]),
    ],
)
async def test_what_planned_times_become_while_a_run_is_live(
    driver: ServiceDriver, rule: str, after_three: list[str], after_the_first_ends: list[str]
) -> None:
    await driver.job(rule=rule)
    await driver.tick(MINUTE)
    [first] = await driver.claim()
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    assert [where for _, where, _ in driver.runs()] == after_three
    is_cancelled = driver.sql("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases") == [(True,)]
    assert is_cancelled == (rule == "cancel_running")
    driver.balance()
    await driver.finish(first)
    assert [where for _, where, _ in driver.runs()] == after_the_first_ends
    driver.balance()


@pytest.mark.parametrize("rule", ["skip", "queue", "queue_one", "cancel_running"])
async def test_manual_runs_wait_their_turn_and_never_skip(driver: ServiceDriver, rule: str) -> None:
    job_id = await driver.job(Cron("0 0 * * *"), rule=rule)
    ids = [await run_now(driver, job_id) for _ in range(3)]
    assert [where for _, where, _ in driver.runs()] == ["ready", "waiting", "waiting"]
    assert [done for _ in range(3) for [done] in [await driver.work()]] == ids
    driver.balance()


async def test_manual_runs_of_a_concurrent_job_start_together(driver: ServiceDriver) -> None:
    job_id = await driver.job(Cron("0 0 * * *"), rule="concurrent")
    ids = {await run_now(driver, job_id) for _ in range(3)}
    assert set(await driver.work()) == ids
    driver.balance()


@pytest.mark.parametrize(
    ("rule", "second"),
    [("skip", "skipped"), ("queue", "waiting"), ("queue_one", "waiting"), ("cancel_running", "ready")],
)
async def test_a_run_that_waits_for_its_retry_is_live(driver: ServiceDriver, rule: str, second: str) -> None:
    patient = Retry(3, Backoff.FIXED, base=10 * MINUTE, past_next=True)
    await driver.job(rule=rule, retry=patient)
    await driver.tick(MINUTE)
    assert len(await driver.work(BOOM)) == 1
    assert driver.runs() == [("schedule", "ready", None)]
    await driver.tick(MINUTE)
    first = "cancelled" if rule == "cancel_running" else "ready"
    assert [where for _, where, _ in driver.runs()] == [first, second]
    driver.balance()


@pytest.mark.requirement("S2-8")
async def test_a_queue_has_its_length(driver: ServiceDriver) -> None:
    job_id = await driver.job(rule="queue", max_queued=2)
    for _ in range(4):
        await driver.tick(MINUTE)
    await run_now(driver, job_id)
    assert [where for _, where, _ in driver.runs()] == ["ready", "waiting", "waiting", "skipped", "waiting"]
    driver.balance()


async def test_a_schedule_finds_a_manual_run_live(driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await run_now(driver, job_id)
    await driver.tick(MINUTE)
    assert driver.runs() == [("manual", "ready", None), ("schedule", "skipped", "overlap")]
    driver.balance()


# Other workspaces

VERBS: dict[str, Callable[[ServiceDriver, WorkspaceId, RunId], Awaitable[object]]] = {
    "cancel": lambda driver, ws, run: run_control.cancel_run(driver.database, Scope(ws, EVE), run),
    "retry": lambda driver, ws, run: run_control.retry_run(driver.database, Scope(ws, EVE), run),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_run_is_as_little_there_as_one_that_never_was(
    driver: ServiceDriver, verb: str
) -> None:
    run_id, globex = await run_now(driver, await driver.job()), WorkspaceId(uuid4())
    driver.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', clock_timestamp())",
        [globex],
    )
    with pytest.raises(NotFound) as foreign:
        await VERBS[verb](driver, globex, run_id)
    with pytest.raises(NotFound) as unknown:
        await VERBS[verb](driver, globex, RunId(uuid4()))
    assert (foreign.value.message, foreign.value.hint) == (unknown.value.message, unknown.value.hint)
    assert driver.runs() == [("manual", "ready", None)]
