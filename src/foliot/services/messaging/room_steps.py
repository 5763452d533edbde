"""Steps on chat rooms within a transaction: find one, keep its quotas, set its webhook, queue a message for delivery."""

from __future__ import annotations

from foliot.domain.access import Scope
from foliot.domain.delivery import DeliveryKind
from foliot.domain.errors import NotFound
from foliot.domain.ids import JobId, PrincipalId, RoomId
from foliot.domain.quotas import Quotas, check_messages, check_rooms
from foliot.domain.rooms import Hook, Message, Room, Webhook
from foliot.domain.secret_references import Reference
from foliot.services.identity.quota_steps import NEAR
from foliot.services.secrets.reference_steps import check_named
from foliot.storage.content import rooms
from foliot.storage.identity import members, workspaces
from foliot.storage.jobs import jobs
from foliot.storage.outbox import outbox, webhooks
from foliot.storage.tx import Tx
from foliot.wire.instants import read_id

REMOVED = "The webhook was removed before this was sent."


async def find_room(tx: Tx, room: str, agent: PrincipalId | None) -> Room | None:
    """Return the room with this id or key, when the agent may see it. Without an agent, every room is visible."""
    room_id = read_id(room)
    return await (
        rooms.find_by_key(tx, room, agent) if room_id is None else rooms.get(tx, RoomId(room_id), agent)
    )


async def agent_of_job(tx: Tx, job_id: JobId) -> PrincipalId | None:
    """Return the owner of the job when that is an agent: the job may write only where its agent may."""
    owner = await jobs.load_owner(tx, job_id)
    found = None if owner is None else await members.get(tx, owner)
    return owner if found is not None and found.principal.is_agent else None


def room_not_found(room: str) -> NotFound:
    return NotFound(
        f"There is no room {room}, or this job may not write in it.",
        hint="Name a room by its id or key; without one, the job gets a room of its own.",
    )


async def get_notice_room(tx: Tx, room: str) -> Room:
    """Return the room of a channel, which may be any room of the workspace."""
    found = await find_room(tx, room, None)
    if found is None:
        raise NotFound(f'There is no room with the id or key "{room}".')
    return found


async def check_room_quota(tx: Tx, quotas: Quotas) -> None:
    """Call this after the insert, so that the new room counts. Near the limit, a lock makes writers wait for each other."""
    if quotas.rooms is None or await rooms.count(tx, quotas.rooms + 1) <= quotas.rooms - NEAR:
        return
    await workspaces.lock_quota(tx)
    check_rooms(quotas, await rooms.count(tx, quotas.rooms + 1))


async def check_message_quota(tx: Tx, quotas: Quotas, sent: Message) -> None:
    """Call this after the insert, under the room's lock. Counts from the oldest message on, deleted ones included."""
    if quotas.room_messages is not None and sent.seq > quotas.room_messages:
        oldest = await rooms.find_oldest_seq(tx, sent.room_id)
        check_messages(quotas, 0 if oldest is None else sent.seq - oldest + 1)


async def set_webhook(tx: Tx, scope: Scope, room_id: RoomId, hook: Hook, before: Webhook | None) -> None:
    """Set the webhook of a locked room. Waiting deliveries go to the new address at once."""
    if hook.secret is not None and (before is None or hook.secret != before.hook.secret):
        await check_named(tx, [Reference(hook.secret, "/secret")], "/webhook", scope)
    await webhooks.set_hook(tx, room_id, hook)
    await outbox.retarget(tx, room_id, hook.receiver)


async def remove_webhook(tx: Tx, room_id: RoomId) -> None:
    """Remove the webhook of a locked room and end its waiting deliveries."""
    await webhooks.lock(tx, room_id)
    await outbox.cancel_pending(tx, room_id, REMOVED)
    await webhooks.remove(tx, room_id)


async def queue_delivery(tx: Tx, message: Message) -> bool:
    """Queue the message for the room's webhook, in the transaction that writes it. Return whether there is one.

    The webhook is read after the room's lock: one that was set while this transaction waited counts.
    """
    found = await webhooks.lock(tx, message.room_id)
    if found is None or found.stopped_at is not None:
        return False
    await outbox.put(tx, DeliveryKind.ROOM_MESSAGE, message.room_id, message.seq, found.hook.receiver)
    return True
