"""Nothing that the schedule made starts while its job is stopped, whatever it was doing when that happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge, EdgeMode
from foliot.domain.ids import JobId
from foliot.domain.outcomes import Failed, HandedBack, Lost, Outcome, TimedOut
from foliot.domain.policy import Breaker, BreakerAction, Retry
from foliot.domain.run import RunError, Trigger
from foliot.domain.schedule import Interval, Manual
from foliot.services.jobs import job_status, jobs
from foliot.services.runs import run_control
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers import limits
from foliot.testing.fixtures import ANA, BEN
from tests.services.shop import MINUTE, Shop

pytestmark = pytest.mark.anyio
HOUR = 60 * MINUTE
BOOM = Failed(RunError("boom", "It broke."))
AGAIN = Retry(delays=(MINUTE,), past_next=True)


async def pause(shop: Shop, job_id: JobId) -> None:
    await job_status.pause(shop.database, Scope(shop.workspace, BEN), job_id)


async def resume(shop: Shop, job_id: JobId) -> None:
    await job_status.resume(shop.database, Scope(shop.workspace, BEN), job_id)


async def by_hand(shop: Shop, job_id: JobId) -> None:
    await run_control.run_now(shop.database, Scope(shop.workspace, BEN), job_id)


async def starts_only_after_its_resume(shop: Shop, job_id: JobId) -> None:
    await advance_waiting_runs(shop.database)
    assert await shop.claim() == []
    shop.balance()
    await resume(shop, job_id)
    assert [run.trigger for run in await shop.claim()] == [Trigger.SCHEDULE]
    shop.balance()


@pytest.mark.parametrize("outcome", [BOOM, TimedOut(), Lost(), HandedBack()])
async def test_an_attempt_that_ends_in_a_pause_is_repeated_after_it(shop: Shop, outcome: Outcome) -> None:
    job_id = await shop.job(Interval(HOUR), retry=AGAIN)
    await shop.tick(HOUR)
    [run] = await shop.claim()
    await pause(shop, job_id)
    assert await shop.finish(run, outcome)
    assert shop.timer("live", "waiting") == (0, 1)
    shop.clock.advance(5 * MINUTE)
    await starts_only_after_its_resume(shop, job_id)


async def test_a_run_at_a_cap_waits_for_the_resume(shop: Shop) -> None:
    await limits.set_limit(shop.database, Scope(shop.workspace, BEN), "", 1)
    other, job_id = await shop.job(Manual()), await shop.job(Interval(HOUR))
    await by_hand(shop, other)
    [run] = await shop.claim()
    await shop.tick(HOUR)
    assert await shop.claim() == []
    await pause(shop, job_id)
    assert await shop.finish(run)
    await starts_only_after_its_resume(shop, job_id)


async def test_a_run_that_a_freeze_held_waits_for_the_resume(shop: Shop) -> None:
    job_id = await shop.job(Interval(HOUR))
    await shop.tick(HOUR)
    frozen = await freezes.turn_on(
        shop.database, Scope(shop.workspace, BEN), NewFreeze("sale", everything=True)
    )
    shop.clock.advance(MINUTE)
    await pause(shop, job_id)
    await freezes.lift(shop.database, Scope(shop.workspace, BEN), frozen)
    await starts_only_after_its_resume(shop, job_id)


async def test_a_run_at_a_gate_waits_for_the_resume(shop: Shop) -> None:
    upstream = await shop.job(Manual())
    spec = Spec(Interval(HOUR), "python", retry=Retry(0))
    gated = Definition("gated", spec, depends_on=(Edge(upstream, mode=EdgeMode.GATE),))
    job_id = (await jobs.create(shop.database, Scope(shop.workspace, ANA), gated)).id
    await by_hand(shop, upstream)
    [run] = await shop.claim()
    await shop.tick(HOUR)
    await pause(shop, job_id)
    assert await shop.finish(run)
    shop.clock.advance(HOUR)  # past the patience of the gate, which is not what it waits for any more
    await starts_only_after_its_resume(shop, job_id)


async def test_what_somebody_asked_for_passes_the_run_that_a_pause_holds(shop: Shop) -> None:
    job_id = await shop.job(Interval(HOUR))
    await shop.tick(HOUR)
    await by_hand(shop, job_id)
    await pause(shop, job_id)
    [run] = await shop.claim()
    assert run.trigger is Trigger.MANUAL
    shop.balance()
    assert await shop.finish(run)
    await starts_only_after_its_resume(shop, job_id)


async def test_what_somebody_asked_for_passes_the_attempt_that_failed_in_a_pause(shop: Shop) -> None:
    job_id = await shop.job(Interval(HOUR), retry=AGAIN)
    await shop.tick(HOUR)
    [run] = await shop.claim()
    await by_hand(shop, job_id)
    await pause(shop, job_id)
    assert await shop.finish(run, BOOM)
    shop.clock.advance(MINUTE)
    [run] = await shop.claim()
    assert run.trigger is Trigger.MANUAL
    shop.balance()


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(BOOM, "failed"), (TimedOut(), "timed_out"), (Lost(), "interrupted"), (HandedBack(), "cancelled")],
)
async def test_nothing_of_an_archived_job_is_tried_again(shop: Shop, outcome: Outcome, status: str) -> None:
    job_id = await shop.job(retry=AGAIN)
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    await job_status.archive(shop.database, Scope(shop.workspace, BEN), job_id)
    assert await shop.finish(run, outcome)
    assert shop.runs() == [("schedule", status, None)]
    shop.balance()


@pytest.mark.parametrize("action", [BreakerAction.PAUSE, BreakerAction.FAIL])
async def test_a_breaker_holds_back_the_other_runs_of_its_job(shop: Shop, action: BreakerAction) -> None:
    job_id = await shop.job(rule="concurrent", breaker=Breaker(after=1, action=action))
    for _ in range(3):
        await shop.tick(MINUTE)
    [run] = await shop.claim(permits=1)
    assert await shop.finish(run, BOOM)
    assert shop.status() in ("paused", "failed")
    assert shop.timer("live", "waiting", "live_run_id") == (0, 2, None)
    shop.balance()
    await advance_waiting_runs(shop.database)
    assert await shop.claim() == []
    await resume(shop, job_id)
    assert len(await shop.claim()) == 2
    shop.balance()


async def test_a_breaker_holds_back_what_is_repeated_in_the_same_batch(shop: Shop) -> None:
    """One attempt is to be repeated, then another run trips the breaker, then a third attempt is to be repeated."""
    breaker = Breaker(after=1, action=BreakerAction.PAUSE)
    job_id = await shop.job(rule="concurrent", breaker=breaker, retry=replace(AGAIN, max=1))
    for _ in range(4):
        await shop.tick(MINUTE)
    before, tripping, after, _ = await shop.claim()
    assert await shop.finish(tripping, BOOM)
    shop.clock.advance(MINUTE)
    [tripping] = await shop.claim()
    ends = [(before, BOOM), (tripping, BOOM), (after, BOOM)]
    reports = [Report(run.run_id, run.job_id, run.fence, shop.worker, outcome) for run, outcome in ends]
    assert len(await report(shop.database, reports)) == 3
    assert shop.status() == "paused"
    assert shop.timer("live", "waiting") == (1, 2)  # the fourth is still under way
    shop.balance()
    shop.clock.advance(5 * MINUTE)
    await advance_waiting_runs(shop.database)
    assert await shop.claim() == []
    await resume(shop, job_id)
    assert {run.run_id for run in await shop.claim()} == {before.run_id, after.run_id}
    shop.balance()


async def test_what_somebody_asked_for_passes_a_breaker(shop: Shop) -> None:
    job_id = await shop.job(rule="concurrent", breaker=Breaker(after=1, action=BreakerAction.PAUSE))
    await shop.tick(MINUTE)
    [run] = await shop.claim()
    await by_hand(shop, job_id)
    await shop.tick(MINUTE)
    assert await shop.finish(run, BOOM)
    assert [run.trigger for run in await shop.claim()] == [Trigger.MANUAL]
    shop.balance()
