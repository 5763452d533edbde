"""Events: kept while somebody listens and an hour longer, and honest about what is not kept."""

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
from tests.services.shop import MINUTE, Shop
from tests.waiting import until

pytestmark = pytest.mark.anyio
BROKE = Failed(RunError("boom", "It broke."))
ALL = EventFilter()
ANA = Actor("ana")


async def calm(shop: Shop) -> None:
    """Events are told up to the oldest transaction of the whole server, where other tests have theirs: those must have ended."""
    [(begun,)] = shop.sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    await until(lambda: shop.sql(oldest)[0][0] >= begun)


async def listen(shop: Shop, last: EventPosition | None = None) -> events.Subscription:
    await calm(shop)
    return await events.listen(shop.database, shop.workspace, last)


async def kinds(shop: Shop, place: EventPosition, wanted: EventFilter = ALL) -> list[str]:
    await calm(shop)
    return [each.kind for each in (await events.after(shop.database, shop.workspace, place, wanted)).events]


def count(shop: Shop) -> int:
    [(found,)] = shop.sql("SELECT count(*) FROM foliot.events")
    return int(found)


async def test_without_a_listener_the_engine_writes_none(shop: Shop) -> None:
    await shop.job()
    await shop.tick(MINUTE)
    await shop.work()
    assert count(shop) == 0


async def test_every_way_a_run_can_go_is_told(shop: Shop) -> None:
    place = (await listen(shop)).place
    job = await shop.job(Manual(), retry=Retry(1, delays=(MINUTE,)), breaker=Breaker(1))
    await run_control.run_now(shop.database, Scope(shop.workspace, ANA), job)
    await shop.work(BROKE)
    shop.clock.advance(MINUTE)
    await shop.work(BROKE)
    cancelled = await run_control.run_now(shop.database, Scope(shop.workspace, ANA), await shop.job(Manual()))
    await run_control.cancel_run(shop.database, Scope(shop.workspace, ANA), cancelled)
    assert await kinds(shop, place) == [
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
    assert await kinds(shop, place, EventFilter(("run.failed", "run.retrying"))) == [
        "run.retrying",
        "run.failed",
    ]
    assert await kinds(shop, place, EventFilter(job_id=job, kinds=("job",))) == ["job.created", "job.paused"]


async def test_a_listener_may_be_away_for_an_hour_and_not_longer(shop: Shop) -> None:
    begun = await listen(shop)
    shop.clock.advance(timedelta(minutes=58))
    await shop.job()
    back = await listen(shop, begun.place)
    assert (back.is_gap, await kinds(shop, back.place)) == (False, ["job.created"])
    shop.clock.advance(timedelta(minutes=61))
    await shop.job()
    late = await listen(shop, begun.place)
    assert (late.is_gap, await kinds(shop, late.place)) == (True, [])
    await shop.job()
    assert await kinds(shop, late.place) == ["job.created"]


async def test_what_was_pruned_is_a_gap_to_whoever_has_not_seen_it(shop: Shop) -> None:
    begun = await listen(shop)
    await shop.job()
    shop.clock.advance(timedelta(minutes=50))
    await calm(shop)
    seen = (await events.after(shop.database, shop.workspace, begun.place, ALL)).place
    assert not (await listen(shop, seen)).is_gap
    shop.clock.advance(timedelta(minutes=20))
    assert await events.prune(shop.database) == 1
    assert (await listen(shop, begun.place)).is_gap
    assert not (await listen(shop, seen)).is_gap


async def test_a_watch_that_nobody_comes_back_to_is_forgotten_with_its_events(shop: Shop) -> None:
    await listen(shop)
    await shop.job()
    shop.clock.advance(timedelta(hours=3))
    await events.prune(shop.database)
    await events.prune(shop.database)
    assert count(shop) == 0
    assert shop.sql("SELECT * FROM foliot.watches") == []


async def test_numbers_of_another_server_are_a_gap_and_its_events_go(shop: Shop) -> None:
    """After a restore, transactions are counted from elsewhere."""
    begun = await listen(shop)
    future = begun.place.xid + 1_000_000
    shop.sql("UPDATE foliot.watches SET since = %s RETURNING 1", future)
    shop.sql(
        "INSERT INTO foliot.events (workspace_id, xid, at, kind) VALUES (%s, %s, %s, 'job.created') RETURNING 1",
        shop.workspace,
        future,
        shop.clock.now(),
    )
    back = await listen(shop, EventPosition(future + 1))
    assert back.is_gap
    await events.prune(shop.database)
    assert count(shop) == 0
    await shop.job()
    again = await listen(shop, back.place)
    assert (again.is_gap, await kinds(shop, again.place)) == (False, ["job.created"])


@pytest.mark.parametrize("text", ["", "7", "-", "a-b", "1-2-3", "99999999999999999999-0", "1٣-0"])
def test_an_id_that_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        events.read_event_id(text)


def test_an_id_reads_back() -> None:
    assert events.read_event_id(events.write_event_id(EventPosition(812, 7))) == EventPosition(812, 7)
