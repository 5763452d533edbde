"""The courier against real receivers: what is sent, how often, in which order, and by whom of two."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.delivery import PATIENCE, Answered, DeliveryState
from foliot.domain.errors import Conflict
from foliot.domain.ids import RoomId, WorkspaceId
from foliot.domain.quotas import Quotas
from foliot.egress.client import Egress
from foliot.engine.courier import OF_ONE_RECEIVER
from foliot.services.identity import installation, workspaces
from foliot.services.messaging import courier as services
from foliot.services.messaging import rooms
from foliot.services.messaging.courier import CourierCapacity, OutgoingMessage
from foliot.services.messaging.rooms import RoomChanges
from foliot.services.secrets import secrets
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST, a_vault
from tests.engine.webhook_receiver import WebhookHarness, admitted, facts, receive_webhooks, work
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
Owner = psycopg.Connection[Any]
SECRET = "whsec_" + base64.b64encode(b"only for this test, 24 b").decode()
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
FREE = CourierCapacity(40, 10, 4)


@pytest.fixture
async def office(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> AsyncIterator[WebhookHarness]:
    made = WebhookHarness(database, clock, await admitted(database, workspace), a_vault())
    yield made
    await made.close()


async def states(office: WebhookHarness, room_id: RoomId) -> list[str]:
    """Of its messages, the oldest first."""
    found = await rooms.deliveries(office.database, office.caller, room_id, 2**62, 200, None)
    return [each.state.value for each in reversed(found)]


async def test_a_message_is_sent_signed_as_standard_webhooks_say(office: WebhookHarness) -> None:
    await secrets.create(
        office.database, office.vault, Scope(office.caller.workspace_id, office.caller.actor), "hook", SECRET
    )
    async with receive_webhooks() as receiver:
        room_id = await office.room(receiver.url, "hook")
        await office.post(room_id, "stand up")
        await work(office.courier())
    [(headers, body)] = receiver.came
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = hmac.new(b"only for this test, 24 b", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()
    assert headers["webhook-timestamp"] == str(int(office.clock.now().timestamp()))
    said = json.loads(body)
    assert (said["type"], said["room"]["name"], said["data"]["seq"]) == ("room.message", "support", 1)
    assert facts(await office.look(room_id)) == {"seq": 1, "failing": False, "error": None}


async def test_a_receiver_that_fails_gets_the_same_again_later_under_the_same_id(
    office: WebhookHarness,
) -> None:
    async with receive_webhooks("500 Oops", "503 Busy\r\nretry-after: 120") as receiver:
        room_id = await office.room(receiver.url)
        await office.post(room_id, "hello")
        courier = office.courier()
        await work(courier)
        assert facts(await office.look(room_id)) == {
            "seq": None,
            "failing": True,
            "error": "The receiver answered 500 Oops.",
        }
        await work(courier)
        assert len(receiver.came) == 1
        office.clock.advance(10 * SECOND)
        await work(courier)
        office.clock.advance(MINUTE)
        await work(courier)
        assert len(receiver.came) == 2  # it had asked for two minutes
        office.clock.advance(MINUTE)
        await work(courier)
    assert len({each.headers["webhook-id"] for each in receiver.came}) == 1
    assert [each.headers["foliot-attempt"] for each in receiver.came] == ["1", "2", "3"]
    assert facts(await office.look(room_id)) == {"seq": 1, "failing": False, "error": None}


async def test_what_came_while_the_receiver_was_away_arrives_in_order(office: WebhookHarness) -> None:
    async with receive_webhooks() as receiver:
        port = receiver.port
    room_id = await office.room(f"http://127.0.0.1:{port}/hook")
    courier = office.courier()
    for text in ("one", "two", "three"):
        await office.post(room_id, text)
        await work(courier)
    assert "No answer" in str(facts(await office.look(room_id))["error"])
    assert await states(office, room_id) == ["waiting"] * 3
    office.clock.advance(MINUTE)
    async with receive_webhooks(port=port) as receiver:
        await work(courier)
    assert receiver.texts == ["one", "two", "three"]
    assert await states(office, room_id) == ["delivered"] * 3


async def test_what_nobody_took_for_a_day_is_given_up_and_lets_the_next_go(office: WebhookHarness) -> None:
    async with receive_webhooks(*["500 Oops"] * 3) as receiver:
        room_id = await office.room(receiver.url)
        await office.post(room_id, "old", "older than a day when its turn comes")
        courier = office.courier()
        await work(courier)
        office.clock.advance(PATIENCE)
        await office.post(room_id, "new")
        await work(courier)
        assert await states(office, room_id) == ["dead", "dead", "delivered"]
        assert await rooms.redeliver(office.database, office.caller, room_id) == 2
        await work(courier)
    assert receiver.texts[3:] == ["new", "old", "older than a day when its turn comes"]
    assert len({each.headers["webhook-id"] for each in receiver.came}) == 3
    assert await states(office, room_id) == ["delivered"] * 3


async def test_a_receiver_that_is_gone_for_good_is_left_alone_until_the_webhook_is_set_again(
    office: WebhookHarness,
) -> None:
    async with receive_webhooks("410 Gone") as receiver:
        room_id = await office.room(receiver.url)
        await office.post(room_id, "one", "two")
        courier = office.courier()
        await work(courier)
        await office.post(room_id, "three")
        await work(courier)
        assert receiver.texts == ["one"]
        assert await states(office, room_id) == ["dead", "dead"]
        stopped = (await office.look(room_id)).webhook
        assert stopped is not None
        assert stopped.stopped_at is not None
        with pytest.raises(Conflict):
            await rooms.redeliver(office.database, office.caller, room_id)
        await office.point(room_id, receiver.url)
        await office.post(room_id, "four")
        await work(courier)
        await rooms.redeliver(office.database, office.caller, room_id)
        await work(courier)
    assert receiver.texts == ["one", "four", "one", "two"]


async def test_a_name_that_leads_inside_is_not_called_and_the_reason_is_kept(office: WebhookHarness) -> None:
    async def inside(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with receive_webhooks() as receiver:
        room_id = await office.room(f"http://innocent.test:{receiver.port}/hook")
        await office.post(room_id, "secret")
        await work(office.courier(egress=Egress(resolve=inside)))
        assert receiver.came == []
        error = str(facts(await office.look(room_id))["error"])
        assert "innocent.test resolves to an address that may not be called" in error
        assert "127.0.0.1" not in error
        assert "FOLIOT_EGRESS_ALLOW" in error
        [delivery] = await rooms.deliveries(
            office.database, office.caller, room_id, 9, 9, DeliveryState.WAITING
        )
        assert delivery.error == error


async def test_a_secret_that_is_missing_is_reported_and_waited_for(
    office: WebhookHarness, owner: Owner
) -> None:
    workspace_id, by = office.caller.workspace_id, office.caller.actor
    made = await secrets.create(office.database, office.vault, Scope(workspace_id, by), "hook", "not a key")
    async with receive_webhooks() as receiver:
        room_id = await office.room(receiver.url, "hook")
        await office.post(room_id, "hello")
        courier = office.courier()
        await work(courier)
        assert "A secret to sign with is whsec_" in str(facts(await office.look(room_id))["error"])
        with pytest.raises(Conflict, match='is used by room "support"'):
            await secrets.delete(office.database, Scope(workspace_id, by), made)
        await secrets.delete(office.database, Scope(workspace_id, by), made, force=True)
        office.clock.advance(10 * SECOND)
        await work(courier)
        error = str(facts(await office.look(room_id))["error"])
        assert error == 'There is no secret "hook" in this workspace.'
        await secrets.create(office.database, office.vault, Scope(workspace_id, by), "hook", SECRET)
        office.clock.advance(MINUTE)
        await work(courier)
    assert receiver.texts == ["hello"]


async def test_a_receiver_that_hangs_keeps_its_share_of_hands_and_delays_nobody(
    office: WebhookHarness,
) -> None:
    async with receive_webhooks(*[None] * 9) as hanging, receive_webhooks() as well:
        for number in range(9):
            await office.post(await office.room(hanging.url, name=f"room {number}"), "hangs")
        await office.post(await office.room(well.url), "passes")
        courier = office.courier()
        async with asyncio.timeout(5):  # less than a hanging one may take
            while not well.came:
                await courier.step()
                await asyncio.sleep(0.01)
            await wait_until(lambda: len(hanging.came) == OF_ONE_RECEIVER)
            await courier.step()
        assert len(hanging.came) == OF_ONE_RECEIVER
        for task in list(courier._sending):  # the test would have to wait for their deadline
            task.cancel()


async def test_a_free_hand_goes_to_the_workspace_that_has_the_fewest(office: WebhookHarness) -> None:
    other = await workspaces.create(office.database, TEST, "acme", "Acme", "UTC", {})
    theirs = WebhookHarness(
        office.database, office.clock, await admitted(office.database, other.id), office.vault
    )
    for number in range(12):
        await office.post(await office.room(f"http://{number}.example.test/"), "many")
    office.clock.advance(SECOND)
    await theirs.post(await theirs.room("http://example.test/"), "one")
    first = await services.take(office.database, CourierCapacity(3, 10, 4), office.vault)
    assert sorted(each.message.text for each in first.parcels if isinstance(each, OutgoingMessage)) == [
        "many",
        "many",
        "one",
    ]
    sending = Counter((each.taken.workspace_id, each.taken.receiver) for each in first.parcels)
    rest = await services.take(office.database, CourierCapacity(37, 10, 4, sending), office.vault)
    assert len(rest.parcels) == 8  # of the many, ten are on their way at once


async def test_a_restored_installation_sends_nothing_until_it_is_released(office: WebhookHarness) -> None:
    async with receive_webhooks() as receiver:
        await office.post(await office.room(receiver.url), "of last week")
        await installation.hold_after_restore(office.database, "restored from monday.dump")
        await work(office.courier())
    assert receiver.came == []


async def test_two_couriers_send_everything_once(office: WebhookHarness, login_url: str) -> None:
    async with (
        Database(login_url, clock=office.clock) as other,
        receive_webhooks() as one,
        receive_webhooks() as two,
    ):
        for number in range(12):
            room_id = await office.room((one, two)[number % 2].url, name=f"room {number}")
            await office.post(room_id, *(f"{number} {place}" for place in "abc"))
        couriers = office.courier(), office.courier(other)
        async with asyncio.timeout(30):
            while len(one.came) + len(two.came) < 36 or any(each.is_sending for each in couriers):
                await asyncio.gather(*map(work, couriers))
    texts = one.texts + two.texts
    assert Counter(texts) == Counter(f"{number} {place}" for number in range(12) for place in "abc")
    for number in range(12):
        assert [text for text in texts if text.split()[0] == str(number)] == [
            f"{number} {it}" for it in "abc"
        ]


async def test_what_a_courier_died_over_is_sent_again_under_its_id_and_its_late_word_not_taken(
    office: WebhookHarness,
) -> None:
    async with receive_webhooks() as receiver:
        room_id = await office.room(receiver.url)
        await office.post(room_id, "once or twice")
        died = await services.take(office.database, FREE, office.vault)
        [taken] = [each.taken for each in died.parcels]
        courier = office.courier()
        await work(courier)
        assert receiver.came == []  # another courier holds it
        office.clock.advance(services.LEASE)
        await work(courier)
        await services.record(office.database, taken, Answered(500, "too late"))
    assert [each.headers["webhook-id"] for each in receiver.came] == [str(taken.id)]
    assert facts(await office.look(room_id)) == {"seq": 1, "failing": False, "error": None}


async def test_a_room_that_is_gone_or_sends_no_more_leaves_nothing_to_send(
    office: WebhookHarness, owner: Owner
) -> None:
    async with receive_webhooks() as receiver:
        deleted, removed = await office.room(receiver.url), await office.room(receiver.url)
        for room_id in (deleted, removed):
            await office.post(room_id, "unsent")
        await rooms.delete(office.database, office.caller, deleted)
        await rooms.change(office.database, office.caller, removed, RoomChanges(webhook=None))
        await office.post(removed, "unheard")
        await work(office.courier())
    assert receiver.came == []
    assert await states(office, removed) == ["dead"]
    assert owner.execute("SELECT count(*) FROM foliot.outbox").fetchone() == (1,)


async def test_a_message_that_is_no_longer_kept_lets_the_next_go(
    office: WebhookHarness, owner: Owner
) -> None:
    async with receive_webhooks() as receiver:
        room_id = await office.room(receiver.url)
        await office.post(room_id, "pruned", "kept")
        owner.execute("DELETE FROM foliot.messages WHERE text = 'pruned'")
        await work(office.courier())
        assert receiver.texts == ["kept"]
        assert await states(office, room_id) == ["dead", "delivered"]
        assert facts(await office.look(room_id)) == {"seq": 2, "failing": False, "error": None}


async def test_an_archived_workspace_sends_nothing(office: WebhookHarness) -> None:
    async with receive_webhooks() as receiver:
        other = await workspaces.create(office.database, TEST, "acme", "Acme", "UTC", {})
        theirs = WebhookHarness(
            office.database, office.clock, await admitted(office.database, other.id), office.vault
        )
        room_id = await theirs.room(receiver.url)
        await theirs.post(room_id, "unsent")
        await workspaces.archive(office.database, TEST, other.id)
        await work(office.courier())
        assert receiver.came == []
        assert await states(theirs, room_id) == ["dead"]


async def test_a_workspace_sees_and_receives_its_own_alone(office: WebhookHarness, owner: Owner) -> None:
    other = await workspaces.create(office.database, TEST, "acme", "Acme", "UTC", {})
    theirs = WebhookHarness(
        office.database, office.clock, await admitted(office.database, other.id), office.vault
    )
    async with receive_webhooks("500 Oops") as failing, receive_webhooks() as well:
        ours, others = await office.room(failing.url), await theirs.room(well.url)
        await office.post(ours, "ours")
        await theirs.post(others, "theirs")
        await work(office.courier())
    assert (failing.texts, well.texts) == (["ours"], ["theirs"])
    assert facts(await office.look(ours))["failing"]
    assert facts(await theirs.look(others)) == {"seq": 1, "failing": False, "error": None}
    found = owner.execute("SELECT workspace_id, delivered FROM foliot.outbox ORDER BY delivered").fetchall()
    assert found == [(other.id, True), (office.caller.workspace_id, None)]


async def test_a_change_of_address_counts_for_what_waits(office: WebhookHarness) -> None:
    async with receive_webhooks("500 Oops") as old, receive_webhooks() as new:
        room_id = await office.room(old.url)
        await office.post(room_id, "one", "two")
        courier = office.courier()
        await work(courier)
        office.clock.advance(PATIENCE - SECOND)
        new.answers.append("500 Not yet")
        await office.point(room_id, new.url)
        await work(courier)
        office.clock.advance(MINUTE)
        await work(courier)  # a new address, and with it another day
    assert (old.texts, new.texts) == (["one"], ["one", "one", "two"])


async def test_what_is_old_goes_messages_empty_rooms_of_runs_and_ended_deliveries(
    office: WebhookHarness, owner: Owner
) -> None:
    async with receive_webhooks() as receiver:
        room_id = await office.room(receiver.url)
        await office.post(room_id, "old")
        await work(office.courier())
    owner.execute(
        "INSERT INTO foliot.rooms (workspace_id, id, key, name, last_message_at, created_at)"
        " SELECT workspace_id, gen_random_uuid(), 'run:1', 'of a run', last_message_at, created_at FROM foliot.rooms"
    )
    office.clock.advance(timedelta(days=8))
    await office.post(room_id, "new")
    assert await rooms.prune(office.database, timedelta(days=7)) == 1
    assert await services.prune(office.database) == 1
    assert owner.execute("SELECT text FROM foliot.messages").fetchall() == [("new",)]
    assert owner.execute("SELECT name FROM foliot.rooms").fetchall() == [("support",)]
    assert owner.execute("SELECT position FROM foliot.outbox").fetchall() == [(2,)]


def test_quotas_of_rooms_are_off_unless_they_are_set() -> None:
    assert (Quotas().rooms, Quotas().room_messages) == (None, None)
