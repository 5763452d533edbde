"""Deliveries of a room's webhook: list them, and send failed ones again."""

from __future__ import annotations

from collections.abc import Collection

from foliot.domain.delivery import Delivery, DeliveryState
from foliot.domain.errors import Conflict, require_found
from foliot.domain.ids import DeliveryId, RoomId
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.storage.content import rooms
from foliot.storage.outbox import outbox, webhooks
from foliot.storage.tx import Database, Role

__all__ = ["deliveries", "redeliver"]

AT_ONCE = 1_000  # sent again by one request


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
