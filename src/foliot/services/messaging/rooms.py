"""Chat rooms: create, share with agents, set webhooks, read and post messages; list deliveries and send failed ones again.

Why: docs/decisions/903-chat-rooms-and-webhooks.md
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from foliot.domain.delivery import Delivery, DeliveryState
from foliot.domain.errors import Conflict, Denied, Invalid, require_found
from foliot.domain.ids import LAST_ID, DeliveryId, PrincipalId, RoomId
from foliot.domain.rooms import Hook, Message, MessageKind, Room, sender_of
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.services.messaging.room_steps import (
    check_message_quota,
    check_room_quota,
    queue_delivery,
    remove_webhook,
    set_webhook,
)
from foliot.storage.content import rooms
from foliot.storage.content.rooms import NewMessage, NewRoom
from foliot.storage.outbox import outbox, webhooks
from foliot.storage.tx import Database, Role, Tx

__all__ = ["NewRoom"]

log = logging.getLogger(__name__)
PRUNED = 2_000  # messages in one step
AT_ONCE = 1_000  # deliveries sent again by one request


class Keep(Enum):
    """A value to keep. None would remove it."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True, slots=True)
class RoomChanges:
    """The fields to change. `webhook` builds the new webhook from the old one; None removes it."""

    name: str | None = None
    agents: tuple[PrincipalId, ...] | None = None
    webhook: Callable[[Hook | None], Hook] | Keep | None = KEEP


@dataclass(frozen=True, slots=True)
class PostedMessage:
    message: Message
    is_sent_on: bool  # to the webhook of the room


@dataclass(frozen=True, slots=True)
class MessagePage:
    items: Sequence[Message]
    is_more: bool


async def create(database: Database, caller: Caller, wanted: NewRoom, hook: Hook | None = None) -> Room:
    """Create a room. A room of an agent belongs to that agent only, and has no webhook."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        if caller.visible_owner is not None:
            _only(caller.visible_owner, wanted.agents)
            if hook is not None:
                raise Denied(
                    "An agent cannot have a room sent elsewhere.",
                    hint="An editor sets the webhook of a room.",
                )
            wanted = replace(wanted, agents=(caller.visible_owner,))
        else:
            await _check_agents(tx, wanted.agents)
        room_id = await rooms.insert(tx, wanted)
        if room_id is None:
            raise Conflict(
                f'There is a room with the key "{wanted.key}" already.', hint="Choose another key."
            )
        await check_room_quota(tx, caller.quotas)
        if hook is not None:
            await set_webhook(tx, caller.scope, room_id, hook, None)
        room = await rooms.get(tx, room_id)
        assert room is not None
        await append_audit(tx, "room.created", ("room", room_id), caller.actor, after=_audit_fields(room))
        return room


async def listed(
    database: Database, caller: Caller, cursor: str | None = None, limit: int = 50, key: str | None = None
) -> ListPage[Room]:
    """List rooms, newest first. An agent sees those that were given to it."""
    [before] = read_cursor(cursor, UUID) or [LAST_ID]
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        found = await rooms.page(tx, before, limit + 1, caller.visible_owner, key)
    return cut_page(found, limit, lambda last: [last.id])


async def get(database: Database, caller: Caller, room_id: RoomId) -> Room:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        return await _found(tx, caller, room_id)


async def change(database: Database, caller: Caller, room_id: RoomId, wanted: RoomChanges) -> Room:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        before = require_found(await rooms.lock(tx, room_id), "room")
        agents = before.agents if wanted.agents is None else wanted.agents
        await _check_agents(tx, [each for each in agents if each not in before.agents])
        name = before.name if wanted.name is None else wanted.name
        await rooms.change(tx, replace(before, name=name, agents=tuple(agents)))
        await _change_webhook(tx, caller, before, wanted)
        after = await rooms.get(tx, room_id)
        assert after is not None
        if _audit_fields(after) != _audit_fields(before) or wanted.webhook is not KEEP:
            thing = ("room", room_id)
            await append_audit(
                tx,
                "room.changed",
                thing,
                caller.actor,
                before=_audit_fields(before),
                after=_audit_fields(after),
            )
        return after


async def delete(database: Database, caller: Caller, room_id: RoomId) -> None:
    """Delete the room with its messages."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        room = require_found(await rooms.lock(tx, room_id), "room")
        await rooms.delete(tx, room_id)
        await outbox.delete_all(tx, room_id)
        before = {**_audit_fields(room), "last_seq": room.last_seq}
        await append_audit(tx, "room.deleted", ("room", room_id), caller.actor, before=before)


async def post(
    database: Database, caller: Caller, room_id: RoomId, text: str, kind: MessageKind = MessageKind.MESSAGE
) -> PostedMessage:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        await _found(tx, caller, room_id)
        new = NewMessage(room_id, kind, sender_of(caller.holder.principal), text)
        sent = require_found(await rooms.append(tx, new), "room")
        await check_message_quota(tx, caller.quotas, sent)
        is_sent_on = await queue_delivery(tx, sent)
        after = {"room_id": str(room_id), "seq": sent.seq, "kind": kind.value}
        await append_audit(tx, "message.posted", ("message", sent.id), caller.actor, after=after)
        return PostedMessage(sent, is_sent_on)


async def read(
    database: Database, caller: Caller, room_id: RoomId, *, after: int = 0, limit: int = 50
) -> MessagePage:
    """List messages after number `after`."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        await _found(tx, caller, room_id)
        found = await rooms.list_messages(tx, room_id, after, limit + 1)
    return MessagePage(found[:limit], len(found) > limit)


async def deliveries(
    database: Database, caller: Caller, room_id: RoomId, before: int, limit: int, state: DeliveryState | None
) -> list[Delivery]:
    """List deliveries, newest message first. Those being sent count as waiting."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        require_found(await rooms.get(tx, room_id), "room")
        return await outbox.page(tx, room_id, before, limit, None if state is None else state.value)


async def redeliver(
    database: Database, caller: Caller, room_id: RoomId, ids: Collection[DeliveryId] | None = None
) -> int:
    """Send failed deliveries again: these, or all, at most `AT_ONCE`. Return how many."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        require_found(await rooms.get(tx, room_id), "room")
        found = await webhooks.lock(tx, room_id)
        if found is None:
            raise Conflict(
                "This room has no webhook.", hint="Set one first; what was given up is then sent there."
            )
        if found.stopped_at is not None:
            raise Conflict(
                "This webhook is stopped: its receiver said that it is gone.",
                hint="Set it again, with the same address or another.",
            )
        again = await outbox.send_again(tx, room_id, found.hook.receiver, ids, AT_ONCE)
        await append_audit(
            tx, "room.redelivered", ("room", room_id), caller.actor, after={"deliveries": again}
        )
        return again


async def prune(database: Database, keep: timedelta, limit: int = PRUNED) -> int:
    """Delete messages older than that, and empty rooms of single runs. Return the larger count."""
    async with database.tx(Role.ENGINE) as tx:
        messages, empty = await rooms.prune(tx, tx.now - keep, limit)
    if messages or empty:
        log.info("messages.pruned", extra={"messages": messages, "rooms": empty})
    return max(messages, empty)


async def _change_webhook(tx: Tx, caller: Caller, before: Room, wanted: RoomChanges) -> None:
    if wanted.webhook is None:
        await remove_webhook(tx, before.id)
    elif not isinstance(wanted.webhook, Keep):
        old = None if before.webhook is None else before.webhook.hook
        await set_webhook(tx, caller.scope, before.id, wanted.webhook(old), before.webhook)


async def _found(tx: Tx, caller: Caller, room_id: RoomId) -> Room:
    return require_found(await rooms.get(tx, room_id, caller.visible_owner), "room")


async def _check_agents(tx: Tx, agents: Sequence[PrincipalId]) -> None:
    known = await rooms.list_agents(tx, agents) if agents else frozenset()
    for place, each in enumerate(agents):
        if each not in known:
            raise _no_agent(place)


def _only(agent: PrincipalId, wanted: Sequence[PrincipalId]) -> None:
    """An agent may name only itself."""
    for place, each in enumerate(wanted):
        if each != agent:
            raise _no_agent(place)


def _no_agent(place: int) -> Invalid:
    return Invalid(
        "There is no such agent.",
        pointer=f"/agents/{place}",
        hint="Rooms are given to agents by their id; people and services see every room.",
    )


def _audit_fields(room: Room) -> Mapping[str, Any]:
    agents = [str(each) for each in room.agents]
    hook = None if room.webhook is None else room.webhook.hook
    webhook = None if hook is None else {"url": hook.url, "secret": hook.secret}
    return {"name": room.name, "key": room.key, "agents": agents, "webhook": webhook}
