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
from foliot.domain.run import RunError
from foliot.domain.schedule import Cron, Interval, IntervalMode, Manual, Once, Otherwise, Window
from foliot.services.jobs import job_status
from foliot.services.runs import backfill as backfilling
from foliot.services.runs import run_control
from foliot.services.runs.run_control import CancelResult
from foliot.testing.fixtures import BEN, EVE
from tests.services.shop import MINUTE, Shop

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
BOOM = Failed(RunError("boom", "It broke."))


async def run_now(shop: Shop, job_id: JobId, **options: Any) -> RunId:
    return await run_control.run_now(shop.database, Scope(shop.workspace, BEN), job_id, **options)


async def cancel(shop: Shop, run_id: RunId) -> CancelResult:
    return await run_control.cancel_run(shop.database, Scope(shop.workspace, BEN), run_id)


async def retry(shop: Shop, run_id: RunId, **options: Any) -> RunId:
    return await run_control.retry_run(shop.database, Scope(shop.workspace, BEN), run_id, **options)


async def backfill(
    shop: Shop, job_id: JobId, start: datetime, end: datetime, *, dry_run: bool = False, **options: Any
) -> backfilling.Backfill:
    return await backfilling.backfill(
        shop.database, Scope(shop.workspace, BEN), job_id, start, end, dry_run=dry_run, **options
    )


def freeze(shop: Shop, scope: dict[str, Any] | None = None) -> UUID:
    freeze_id = uuid4()
    shop.owner.execute(
        "INSERT INTO foliot.freezes (workspace_id, id, scope, start_at, after, reason, created_by, created_at)"
        " VALUES (%s, %s, %s, %s, 'skip', 'stock-taking', 'ana', %s)",
        [shop.workspace, freeze_id, Jsonb(scope or {}), shop.clock.now(), shop.clock.now()],
    )
    return freeze_id


# Runs by hand


async def test_a_run_by_hand_moves_neither_status_nor_schedule(shop: Shop) -> None:
    job_id = await shop.job(Cron("0 0 * * *"), payload={"full": True, "from": "a"})
    before = shop.timer("cursor_at", "due_at", "next_at", "runs_created", "fire_count")
    run_id = await run_now(shop, job_id, input={"from": "b"})
    assert shop.timer("cursor_at", "due_at", "next_at", "runs_created", "fire_count") == before
    assert shop.sql("SELECT id, trigger, triggered_by, input, number FROM foliot.runs") == [
        (run_id, "manual", "ben", {"full": True, "from": "b"}, 1)
    ]
    assert await shop.work() == [run_id]
    assert (shop.status(), shop.audited()) == ("active", ["job.created", "run.requested"])
    shop.balance()


@pytest.mark.parametrize("status", ["paused", "disabled", "completed", "pending"])
async def test_a_run_by_hand_is_done_whatever_the_job_is_doing(shop: Shop, status: str) -> None:
    later = shop.clock.now() + HOUR if status == "pending" else None
    job_id = await shop.job(Cron("* * * * *"), max_runs=1, start_at=later)
    if status == "completed":
        await shop.tick(MINUTE)
        await shop.work()
    if status in ("paused", "disabled"):
        stop = job_status.pause if status == "paused" else job_status.disable
        await stop(shop.database, Scope(shop.workspace, BEN), job_id)
    assert shop.status() == status
    run_id = await run_now(shop, job_id)
    assert await shop.work() == [run_id]
    assert shop.status() == status
    shop.balance()


async def test_a_run_by_hand_asked_for_in_a_pause_goes_before_the_held_ones(shop: Shop) -> None:
    job_id = await shop.job(rule="queue")
    await shop.tick(MINUTE)
    await job_status.pause(shop.database, Scope(shop.workspace, BEN), job_id)
    run_id = await run_now(shop, job_id)
    assert await shop.work() == [run_id]
    assert shop.runs() == [("schedule", "waiting", None), ("manual", "succeeded", None)]
    shop.balance()


async def test_a_run_by_hand_is_bound_by_no_window(shop: Shop) -> None:
    night = Window(time(22), time(23), otherwise=Otherwise.SKIP)
    job_id = await shop.job(Cron("* * * * *"), window=night)
    first, second = await run_now(shop, job_id), await run_now(shop, job_id)
    assert await shop.work() == [first]
    assert await shop.work() == [second]


async def test_a_freeze_is_named_and_overridden(shop: Shop) -> None:
    job_id = await shop.job()
    freeze_id = freeze(shop)
    with pytest.raises(Conflict, match=f"{freeze_id} .stock-taking."):
        await run_now(shop, job_id)
    run_id = await run_now(shop, job_id, override=True)
    assert await shop.work() == [run_id]


async def test_a_freeze_of_other_jobs_holds_nothing_here(shop: Shop) -> None:
    job_id = await shop.job()
    freeze(shop, {"queues": ["mail"]})
    run_id = await run_now(shop, job_id)
    assert await shop.work() == [run_id]


@pytest.mark.parametrize(
    ("planned", "by_hand", "status"), [(Succeeded(), BOOM, "completed"), (BOOM, Succeeded(), "failed")]
)
async def test_a_one_shot_ends_as_its_own_run_did_whatever_a_later_one_does(
    shop: Shop, planned: Any, by_hand: Any, status: str
) -> None:
    job_id = await shop.job(Once(shop.clock.now() + MINUTE))
    await shop.tick(MINUTE)
    await run_now(shop, job_id)
    assert len(await shop.work(planned)) == 1
    assert shop.status() == "active"
    assert len(await shop.work(by_hand)) == 1
    assert shop.status() == status
    shop.balance()


# Cancelling


async def test_a_run_that_no_worker_has_is_cancelled_at_once(shop: Shop) -> None:
    await shop.job(rule="queue")
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    [(first,)] = shop.sql("SELECT run_id FROM foliot.ready")
    assert await cancel(shop, first) is CancelResult.ENDED
    assert [where for _, where, _ in shop.runs()] == ["cancelled", "ready"]
    shop.balance()


async def test_a_run_that_waits_is_cancelled_without_touching_the_live_one(shop: Shop) -> None:
    await shop.job(rule="queue")
    for _ in range(3):
        await shop.tick(MINUTE)
    [(second,)] = shop.sql("SELECT id FROM foliot.runs WHERE number = 2")
    await cancel(shop, second)
    assert [where for _, where, _ in shop.runs()] == ["ready", "cancelled", "waiting"]
    shop.balance()


async def test_a_run_under_way_is_asked_to_stop(shop: Shop) -> None:
    await shop.job()
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    assert await cancel(shop, run.run_id) is CancelResult.REQUESTED
    assert await cancel(shop, run.run_id) is CancelResult.REQUESTED
    assert shop.runs() == [("schedule", "running", None)]
    assert await shop.finish(run, Cancelled())
    with pytest.raises(IllegalMove, match="cancelled, which is final"):
        await cancel(shop, run.run_id)
    shop.balance()


# Repeating


@pytest.mark.parametrize("outcome", [Succeeded(), BOOM])
async def test_a_finished_run_is_done_again_for_its_own_planned_time(shop: Shop, outcome: Any) -> None:
    await shop.job(Cron("0 * * * *"))
    await shop.tick(HOUR)
    [run_id] = await shop.work(outcome)
    shop.clock.advance(10 * MINUTE)
    again = await retry(shop, run_id)
    assert await shop.work() == [again]
    assert shop.sql("SELECT trigger, retry_of, planned_for FROM foliot.runs WHERE id = %s", again) == [
        ("retry", run_id, shop.clock.now() - 10 * MINUTE)
    ]
    shop.balance()


async def test_an_open_run_is_not_repeated(shop: Shop) -> None:
    job_id = await shop.job()
    with pytest.raises(Conflict, match="not ended"):
        await retry(shop, await run_now(shop, job_id))


async def test_a_gap_is_not_one_run_to_repeat(shop: Shop) -> None:
    job_id = await shop.job()
    await job_status.pause(shop.database, Scope(shop.workspace, BEN), job_id)
    shop.clock.advance(HOUR)
    await job_status.resume(shop.database, Scope(shop.workspace, BEN), job_id)
    [(gap,)] = shop.sql("SELECT id FROM foliot.runs")
    with pytest.raises(Conflict, match="several planned times"):
        await retry(shop, gap)


# Skipping the next one


async def test_the_next_planned_time_is_skipped_once_with_its_reason(shop: Shop) -> None:
    job_id = await shop.job()
    skipped = await run_control.skip_next(shop.database, Scope(shop.workspace, BEN), job_id, reason="holiday")
    assert skipped.planned_at == shop.clock.now() + MINUTE
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    assert shop.runs() == [("schedule", "skipped", "operator"), ("schedule", "ready", None)]
    assert shop.sql("SELECT note FROM foliot.runs WHERE number = 1") == [("holiday",)]


async def test_a_skip_can_be_taken_back_until_it_has_happened(shop: Shop) -> None:
    job_id = await shop.job()
    await run_control.skip_next(shop.database, Scope(shop.workspace, BEN), job_id, reason="holiday")
    await run_control.undo_skip_next(shop.database, Scope(shop.workspace, BEN), job_id)
    await shop.tick(MINUTE)
    assert shop.runs() == [("schedule", "ready", None)]
    with pytest.raises(Conflict):
        await run_control.undo_skip_next(shop.database, Scope(shop.workspace, BEN), job_id)


async def test_there_is_no_next_time_to_skip_for_a_job_without_times(shop: Shop) -> None:
    job_id = await shop.job(Manual())
    with pytest.raises(Conflict, match="Nothing is planned"):
        await run_control.skip_next(shop.database, Scope(shop.workspace, BEN), job_id, reason="holiday")


# Backfill


async def test_a_backfill_makes_the_runs_its_dry_run_counted_and_none_twice(shop: Shop) -> None:
    job_id = await shop.job(Cron("0 6 * * *"))
    end = shop.clock.now()
    start = end - timedelta(days=7)
    counted = await backfill(shop, job_id, start, end, dry_run=True)
    assert (counted.count, counted.first, counted.last) == (
        7,
        datetime(2027, 1, 9, 6, tzinfo=UTC),
        datetime(2027, 1, 15, 6, tzinfo=UTC),
    )
    assert shop.runs() == []
    made = await backfill(shop, job_id, start, end)
    assert (made.count, len(made.run_ids)) == (7, 7)
    assert (await backfill(shop, job_id, start - timedelta(days=1), end)).count == 1
    assert shop.sql("SELECT DISTINCT trigger, planned_for::time::text FROM foliot.runs") == [
        ("backfill", "06:00:00")
    ]
    done = [planned for _ in range(8) for [planned] in [await shop.work()]]
    assert done[:7] == list(made.run_ids)
    shop.balance()


async def test_a_backfill_leaves_alone_what_the_schedule_recorded(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    start = shop.clock.now() - 5 * MINUTE
    await shop.tick(MINUTE)
    await shop.tick(5 * MINUTE)  # late: the newest runs, the rest is a gap
    counted = await backfill(shop, job_id, start, shop.clock.now(), dry_run=True)
    assert counted.count == 6
    again = await backfill(shop, job_id, start, shop.clock.now(), dry_run=True, skipped=True)
    assert again.count == 6 + 4  # one ran, and the fifth of the gap is where the range ends


async def test_skipped_times_are_backfilled_once(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    start = shop.clock.now()
    await job_status.pause(shop.database, Scope(shop.workspace, BEN), job_id)
    shop.clock.advance(5 * MINUTE)
    await job_status.resume(shop.database, Scope(shop.workspace, BEN), job_id)
    end = shop.clock.advance(MINUTE / 2)
    assert (await backfill(shop, job_id, start, end)).count == 1  # the instant of creation itself
    assert (await backfill(shop, job_id, start, end, skipped=True)).count == 5
    assert (await backfill(shop, job_id, start, end, skipped=True)).count == 0
    shop.balance()


async def test_a_backfill_never_takes_a_time_that_is_still_to_be_recorded(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    start = shop.clock.now() - 2 * MINUTE
    shop.clock.advance(2 * MINUTE)  # two planned times are due and nobody has ticked
    assert (await backfill(shop, job_id, start, shop.clock.now())).count == 3
    with pytest.raises(Invalid, match="past times"):
        await backfill(shop, job_id, start, shop.clock.now() + MINUTE)


async def test_a_backfill_over_the_cap_is_refused_with_the_count(shop: Shop) -> None:
    job_id = await shop.job(Cron("* * * * *"))
    start = shop.clock.now() - timedelta(days=1)
    assert (await backfill(shop, job_id, start, shop.clock.now(), dry_run=True)).count == 1440
    with pytest.raises(Invalid, match="1,440 planned times"):
        await backfill(shop, job_id, start, shop.clock.now())
    with pytest.raises(Invalid, match="More than 10,000"):
        await backfill(shop, job_id, start - timedelta(days=10), shop.clock.now(), dry_run=True)
    assert shop.runs() == []


async def test_a_backfill_respects_the_window_and_can_go_backwards(shop: Shop) -> None:
    morning = Window(time(6), time(8), otherwise=Otherwise.SKIP)
    job_id = await shop.job(Cron("0 * * * *"), window=morning)
    end = shop.clock.now()
    await backfill(shop, job_id, end - timedelta(days=1), end, oldest_first=False)
    assert [row[0].hour for row in shop.sql("SELECT planned_for FROM foliot.runs ORDER BY number")] == [
        8,
        7,
        6,
    ]
    assert await shop.claim() == []  # it is noon: they wait for the morning
    shop.clock.advance(timedelta(hours=18, minutes=30))
    assert len(await shop.work()) == 1
    assert [where for _, where, _ in shop.runs()] == ["succeeded", "ready", "waiting"]
    shop.balance()


@pytest.mark.parametrize("schedule", [Manual(), Interval(MINUTE, mode=IntervalMode.FIXED_DELAY)])
async def test_a_schedule_without_past_times_is_not_backfilled(shop: Shop, schedule: Any) -> None:
    job_id = await shop.job(schedule)
    with pytest.raises(Conflict, match="no times in the past"):
        await backfill(shop, job_id, shop.clock.now() - HOUR, shop.clock.now())


# Overlap, end to end


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
    shop: Shop, rule: str, after_three: list[str], after_the_first_ends: list[str]
) -> None:
    await shop.job(rule=rule)
    await shop.tick(MINUTE)
    [first] = await shop.claim()
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    assert [where for _, where, _ in shop.runs()] == after_three
    is_cancelled = shop.sql("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases") == [(True,)]
    assert is_cancelled == (rule == "cancel_running")
    shop.balance()
    await shop.finish(first)
    assert [where for _, where, _ in shop.runs()] == after_the_first_ends
    shop.balance()


@pytest.mark.parametrize("rule", ["skip", "queue", "queue_one", "cancel_running"])
async def test_runs_by_hand_wait_their_turn_and_never_skip(shop: Shop, rule: str) -> None:
    job_id = await shop.job(Cron("0 0 * * *"), rule=rule)
    ids = [await run_now(shop, job_id) for _ in range(3)]
    assert [where for _, where, _ in shop.runs()] == ["ready", "waiting", "waiting"]
    assert [done for _ in range(3) for [done] in [await shop.work()]] == ids
    shop.balance()


async def test_runs_by_hand_of_a_concurrent_job_start_together(shop: Shop) -> None:
    job_id = await shop.job(Cron("0 0 * * *"), rule="concurrent")
    ids = {await run_now(shop, job_id) for _ in range(3)}
    assert set(await shop.work()) == ids
    shop.balance()


@pytest.mark.parametrize(
    ("rule", "second"),
    [("skip", "skipped"), ("queue", "waiting"), ("queue_one", "waiting"), ("cancel_running", "ready")],
)
async def test_a_run_that_waits_for_its_retry_is_live(shop: Shop, rule: str, second: str) -> None:
    patient = Retry(3, Backoff.FIXED, base=10 * MINUTE, past_next=True)
    await shop.job(rule=rule, retry=patient)
    await shop.tick(MINUTE)
    assert len(await shop.work(BOOM)) == 1
    assert shop.runs() == [("schedule", "ready", None)]
    await shop.tick(MINUTE)
    first = "cancelled" if rule == "cancel_running" else "ready"
    assert [where for _, where, _ in shop.runs()] == [first, second]
    shop.balance()


async def test_a_queue_has_its_length(shop: Shop) -> None:
    job_id = await shop.job(rule="queue", max_queued=2)
    for _ in range(4):
        await shop.tick(MINUTE)
    await run_now(shop, job_id)
    assert [where for _, where, _ in shop.runs()] == ["ready", "waiting", "waiting", "skipped", "waiting"]
    shop.balance()


async def test_a_schedule_finds_a_run_by_hand_live(shop: Shop) -> None:
    job_id = await shop.job()
    await run_now(shop, job_id)
    await shop.tick(MINUTE)
    assert shop.runs() == [("manual", "ready", None), ("schedule", "skipped", "overlap")]
    shop.balance()


# Other workspaces

VERBS: dict[str, Callable[[Shop, WorkspaceId, RunId], Awaitable[object]]] = {
    "cancel": lambda shop, ws, run: run_control.cancel_run(shop.database, Scope(ws, EVE), run),
    "retry": lambda shop, ws, run: run_control.retry_run(shop.database, Scope(ws, EVE), run),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_run_is_as_little_there_as_one_that_never_was(shop: Shop, verb: str) -> None:
    run_id, globex = await run_now(shop, await shop.job()), WorkspaceId(uuid4())
    shop.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', clock_timestamp())",
        [globex],
    )
    with pytest.raises(NotFound) as foreign:
        await VERBS[verb](shop, globex, run_id)
    with pytest.raises(NotFound) as unknown:
        await VERBS[verb](shop, globex, RunId(uuid4()))
    assert (foreign.value.message, foreign.value.hint) == (unknown.value.message, unknown.value.hint)
    assert shop.runs() == [("manual", "ready", None)]
