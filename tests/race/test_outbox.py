"""A message comes into a lane while what stood before it ends: whichever is first, nothing is left waiting for nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from foliot.domain.delivery import Answered, Came, Unanswered
from foliot.domain.ids import RoomId
from foliot.domain.rooms import Hook
from foliot.services.identity.authentication import Caller
from foliot.services.messaging import courier, room_steps, rooms
from foliot.services.messaging.courier import CourierBatch, OutgoingMessage
from foliot.services.messaging.courier import CourierCapacity as Free
from foliot.services.messaging.rooms import NewRoom, RoomChanges
from foliot.storage.outbox import outbox
from foliot.storage.tx import Database, Role
from tests.engine.webhook_receiver import admitted
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import ServiceDriver

pytestmark = pytest.mark.anyio
HOOK = Hook("https://example.test/hook", "example.test:443")
RECEIVED = Answered(200, "")


async def a_room(database: Database, driver: ServiceDriver) -> tuple[Caller, RoomId]:
    caller = await admitted(database, driver.workspace)
    room = await rooms.create(database, caller, NewRoom("support"), HOOK)
    await rooms.post(database, caller, room.id, "first")
    return caller, room.id


async def taken(database: Database) -> list[OutgoingMessage]:
    return messages_of(await courier.take(database, Free(40, 10, 4), None))


def messages_of(batch: CourierBatch) -> list[OutgoingMessage]:
    return [each for each in batch.parcels if isinstance(each, OutgoingMessage)]


async def test_a_message_written_while_the_one_before_it_ends_is_next(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    caller, room_id = await a_room(nodes.left, driver)
    [first] = await taken(nodes.left)
    async with nodes.paused_at_table(
        rooms.post(nodes.left, caller, room_id, "second"), at="audit"
    ) as writing:
        ending = await nodes.start_blocked(courier.record(nodes.right, first.taken, RECEIVED))
    await writing
    await ending
    assert [each.message.text for each in await taken(nodes.left)] == ["second"]


async def test_a_message_that_comes_behind_an_end_under_way_is_next(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    caller, room_id = await a_room(nodes.left, driver)
    [first] = await taken(nodes.left)
    async with nodes.paused_at_table(
        courier.record(nodes.left, first.taken, RECEIVED), at="outbox"
    ) as ending:
        writing = await nodes.start_blocked(rooms.post(nodes.right, caller, room_id, "second"))
    await ending
    await writing
    assert [each.message.text for each in await taken(nodes.left)] == ["second"]


async def test_of_two_who_take_at_once_each_gets_what_the_other_does_not(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    caller = await admitted(nodes.left, driver.workspace)
    for number in range(4):
        hook = Hook(f"https://{number}.example.test/hook", f"{number}.example.test:443")
        room = await rooms.create(nodes.left, caller, NewRoom("support"), hook)
        await rooms.post(nodes.left, caller, room.id, str(number))
    async with nodes.paused_at_table(courier.take(nodes.left, Free(2, 2, 4), None), at="outbox") as first:
        second = await nodes.start_blocked(courier.take(nodes.right, Free(40, 10, 4), None))
    both = [[each.message.text for each in messages_of(await side)] for side in (first, second)]
    assert sorted(both[0] + both[1]) == ["0", "1", "2", "3"]


async def test_a_courier_does_not_wait_for_what_another_takes(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    caller = await admitted(nodes.left, driver.workspace)
    for number in range(4):
        hook = Hook(f"https://{number}.example.test/hook", f"{number}.example.test:443")
        room = await rooms.create(nodes.left, caller, NewRoom("support"), hook)
        await rooms.post(nodes.left, caller, room.id, str(number))
    async with asyncio.timeout(20), nodes.left.tx(Role.ENGINE) as one, nodes.right.tx(Role.ENGINE) as other:
        first = await outbox.lease_due(one, Free(2, 2, 4), courier.LEASE)
        second = await outbox.lease_due(other, Free(40, 10, 4), courier.LEASE)
    assert (len(first), len(second)) == (2, 2)
    assert {each.id for each in first}.isdisjoint(each.id for each in second)


async def test_a_delivery_that_became_due_too_early_waits_for_the_one_before_it(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    """It should be due never until then; were it due all the same, the order of messages is kept."""
    caller, room_id = await a_room(nodes.left, driver)
    await rooms.post(nodes.left, caller, room_id, "second")
    [first] = await taken(nodes.left)
    driver.owner.execute("UPDATE foliot.outbox SET due_at = created_at WHERE position = 2")
    assert await taken(nodes.left) == []
    await courier.record(nodes.left, first.taken, RECEIVED)
    assert [each.message.text for each in await taken(nodes.left)] == ["second"]


async def test_a_webhook_removed_while_its_answer_is_written_ends_what_waits(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    caller, room_id = await a_room(nodes.left, driver)
    await rooms.post(nodes.left, caller, room_id, "second")
    [first] = await taken(nodes.left)
    async with nodes.paused_at_table(
        courier.record(nodes.left, first.taken, RECEIVED), at="outbox"
    ) as ending:
        removing = await nodes.start_blocked(
            rooms.change(nodes.right, caller, room_id, RoomChanges(webhook=None))
        )
    await ending
    await removing
    reported = owner.execute(
        "SELECT position, delivered, error FROM foliot.outbox ORDER BY position"
    ).fetchall()
    assert reported == [(1, True, None), (2, False, room_steps.REMOVED)]


async def test_a_message_that_waited_for_a_webhook_to_be_set_is_sent_on(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    """Who sets a webhook and then reads what there is must miss nothing that comes behind it."""
    caller = await admitted(nodes.left, driver.workspace)
    room = await rooms.create(nodes.left, caller, NewRoom("support"))
    setting = rooms.change(nodes.left, caller, room.id, RoomChanges(webhook=lambda _: HOOK))
    async with nodes.paused_at_table(setting, at="audit") as first:
        writing = await nodes.start_blocked(rooms.post(nodes.right, caller, room.id, "hello"))
    await first
    assert (await writing).is_sent_on
    assert [each.message.text for each in await taken(nodes.left)] == ["hello"]


@pytest.mark.parametrize("answer", [Answered(200, ""), Answered(410, "It is gone."), Unanswered("Too late.")])
async def test_what_the_old_address_answers_counts_no_more_once_another_is_set(
    driver: ServiceDriver, nodes: RaceNodes, answer: Came
) -> None:
    caller, room_id = await a_room(nodes.left, driver)
    await rooms.post(nodes.left, caller, room_id, "second")
    [first] = await taken(nodes.left)
    other = Hook("https://other.test/hook", "other.test:443")
    await rooms.change(nodes.left, caller, room_id, RoomChanges(webhook=lambda _: other))
    await courier.record(nodes.right, first.taken, answer)
    hook = (await rooms.get(nodes.left, caller, room_id)).webhook
    assert hook is not None
    assert (hook.stopped_at, hook.failing_since) == (None, None)
    assert [(each.message.text, each.url) for each in await taken(nodes.left)] == [("first", other.url)]
