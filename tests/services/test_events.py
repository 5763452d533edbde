"""Events: kept while a client listens and an hour longer, and honest about what is not kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Invalid
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Breaker, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Manual
from foliot.services.messaging import events
from foliot.services.messaging.events import EventFilter, EventPosition
from foliot.services.runs import run_control
from tests.polling import wait_until
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
BROKE = Failed(RunError("boom", "It broke."))
ALL = EventFilter()
ANA = Actor("ana")


async def calm(driver: ServiceDriver) -> None:
    """Events are sent up to the oldest transaction of the whole server, where other tests have theirs: those must have ended."""
    [(begun,)] = driver.sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    await wait_until(lambda: driver.sql(oldest)[0][0] >= begun)


async def listen(driver: ServiceDriver, last: EventPosition | None = None) -> events.Subscription:
    await calm(driver)
    return await events.listen(driver.database, driver.workspace, last)


async def kinds(driver: ServiceDriver, place: EventPosition, wanted: EventFilter = ALL) -> list[str]:
    await calm(driver)
    return [
        each.kind for each in (await events.after(driver.database, driver.workspace, place, wanted)).events
    ]


def count(driver: ServiceDriver) -> int:
    [(found,)] = driver.sql("SELECT count(*) FROM foliot.events")
    return int(found)


async def test_without_a_listener_the_engine_writes_none(driver: ServiceDriver) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    await driver.work()
    assert count(driver) == 0


async def test_every_way_a_run_can_go_is_reported(driver: ServiceDriver) -> None:
    place = (await listen(driver)).place
    job = await driver.job(Manual(), retry=Retry(1, delays=(MINUTE,)), breaker=Breaker(1))
    await run_control.run_now(driver.database, Scope(driver.workspace, ANA), job)
    await driver.work(BROKE)
    driver.clock.advance(MINUTE)
    await driver.work(BROKE)
    cancelled = await run_control.run_now(
        driver.database, Scope(driver.workspace, ANA), await driver.job(Manual())
    )
    await run_control.cancel_run(driver.database, Scope(driver.workspace, ANA), cancelled)
    assert await kinds(driver, place) == [
        "job.created",
        "run.requested",
        "run.started",
        "run.retrying",
        "run.started",
        "run.failed",
        "job.paused",
        "job.created",
        "run.requested",
        "run.cancelled",
    ]
    assert await kinds(driver, place, EventFilter(("run.failed", "run.retrying"))) == [
        "run.retrying",
        "run.failed",
    ]
    assert await kinds(driver, place, EventFilter(job_id=job, kinds=("job",))) == [
        "job.created",
        "job.paused",
    ]


async def test_a_listener_may_be_away_for_an_hour_and_not_longer(driver: ServiceDriver) -> None:
    begun = await listen(driver)
    driver.clock.advance(timedelta(minutes=58))
    await driver.job()
    back = await listen(driver, begun.place)
    assert (back.is_gap, await kinds(driver, back.place)) == (False, ["job.created"])
    driver.clock.advance(timedelta(minutes=61))
    await driver.job()
    late = await listen(driver, begun.place)
    assert (late.is_gap, await kinds(driver, late.place)) == (True, [])
    await driver.job()
    assert await kinds(driver, late.place) == ["job.created"]


async def test_what_was_pruned_is_a_gap_to_whoever_has_not_seen_it(driver: ServiceDriver) -> None:
    begun = await listen(driver)
    await driver.job()
    driver.clock.advance(timedelta(minutes=50))
    await calm(driver)
    seen = (await events.after(driver.database, driver.workspace, begun.place, ALL)).place
    assert not (await listen(driver, seen)).is_gap
    driver.clock.advance(timedelta(minutes=20))
    assert await events.prune(driver.database) == 1
    assert (await listen(driver, begun.place)).is_gap
    assert not (await listen(driver, seen)).is_gap


async def test_a_watch_that_nobody_comes_back_to_is_forgotten_with_its_events(driver: ServiceDriver) -> None:
    await listen(driver)
    await driver.job()
    driver.clock.advance(timedelta(hours=3))
    await events.prune(driver.database)
    await events.prune(driver.database)
    assert count(driver) == 0
    assert driver.sql("SELECT * FROM foliot.watches") == []


async def test_numbers_of_another_server_are_a_gap_and_its_events_go(driver: ServiceDriver) -> None:
    """After a restore, transactions are counted from elsewhere."""
    begun = await listen(driver)
    future = begun.place.xid + 1_000_000
    driver.sql("UPDATE foliot.watches SET since = %s RETURNING 1", future)
    driver.sql(
        "INSERT INTO foliot.events (workspace_id, xid, at, kind) VALUES (%s, %s, %s, 'job.created') RETURNING 1",
        driver.workspace,
        future,
        driver.clock.now(),
    )
    back = await listen(driver, EventPosition(future + 1))
    assert back.is_gap
    await events.prune(driver.database)
    assert count(driver) == 0
    await driver.job()
    again = await listen(driver, back.place)
    assert (again.is_gap, await kinds(driver, again.place)) == (False, ["job.created"])


@pytest.mark.parametrize("text", ["", "7", "-", "a-b", "1-2-3", "99999999999999999999-0", "1٣-0"])
def test_an_id_that_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        events.read_event_id(text)


def test_an_id_reads_back() -> None:
    assert events.read_event_id(events.write_event_id(EventPosition(812, 7))) == EventPosition(812, 7)
