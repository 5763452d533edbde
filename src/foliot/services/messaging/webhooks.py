"""Webhooks of rooms: set and removed with their room, put to work by each message, looked at, and sent again by hand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from foliot.domain.delivery import Delivery, DeliveryState, Kind
from foliot.domain.errors import Conflict
from foliot.domain.ids import DeliveryId, RoomId
from foliot.domain.rooms import Hook, Message, Webhook
from foliot.domain.secret_references import Reference
from foliot.services.identity.authentication import Caller
from foliot.services.jobs.lock_steps import append_audit, not_found
from foliot.services.secrets.reference_steps import check_named
from foliot.storage.content import rooms
from foliot.storage.outbox import outbox, webhooks
from foliot.storage.tx import Database, Role, Tx

__all__ = ["deliveries", "redeliver", "remove", "send_on", "set_hook", "told"]

AT_ONCE = 1_000  # sent again by one request
REMOVED = "The webhook was removed before this was sent."


async def set_hook(tx: Tx, caller: Caller, room_id: RoomId, hook: Hook, before: Webhook | None) -> None:
    """Under the lock of the room. What waits goes to the new address, now."""
    if hook.secret is not None and (before is None or hook.secret != before.hook.secret):
        await check_named(tx, [Reference(hook.secret, "/secret")], "/webhook", caller.scope)
    await webhooks.set_hook(tx, room_id, hook)
    await outbox.retarget(tx, room_id, hook.receiver)


async def remove(tx: Tx, room_id: RoomId) -> None:
    """Under the lock of the room."""
    await webhooks.lock(tx, room_id)
    await outbox.cancel_pending(tx, room_id, REMOVED)
    await webhooks.remove(tx, room_id)


async def send_on(tx: Tx, message: Message) -> bool:
    """In the transaction that writes it: whether it is to be sent. Asked behind the lock of the room, which the writing may have waited
    for: a webhook set meanwhile counts.
    """
    found = await webhooks.lock(tx, message.room_id)
    if found is None or found.stopped_at is not None:
        return False
    await outbox.put(tx, Kind.ROOM_MESSAGE, message.room_id, message.seq, found.hook.receiver)
    return True


async def deliveries(
    database: Database, caller: Caller, room_id: RoomId, before: int, limit: int, state: DeliveryState | None
) -> list[Delivery]:
    """The newest messages first. One that is being sent waits, too."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        if await rooms.get(tx, room_id) is None:
            raise not_found("room")
        return await outbox.page(tx, room_id, before, limit, None if state is None else state.value)


async def redeliver(
    database: Database, caller: Caller, room_id: RoomId, ids: Collection[DeliveryId] | None = None
) -> int:
    """How many of those that were given up are sent again: these, or all, at most `AT_ONCE`."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        if await rooms.get(tx, room_id) is None:
            raise not_found("room")
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


def told(webhook: Webhook | None) -> dict[str, Any] | None:
    """To the audit."""
    return None if webhook is None else {"url": webhook.hook.url, "secret": webhook.hook.secret}
