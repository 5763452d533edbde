"""The message of a run: posted once, however many attempts the run has."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.domain.errors import NotFound
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.quotas import UNLIMITED, Quotas
from foliot.domain.rooms import Message, MessageKind, Room, key_of_job, key_of_run, sender_of_job
from foliot.services.messaging.room_steps import (
    agent_of_job,
    check_message_quota,
    check_room_quota,
    find_room,
    get_notice_room,
    queue_delivery,
    room_not_found,
)
from foliot.storage.content import rooms
from foliot.storage.content.rooms import NewMessage, NewRoom
from foliot.storage.identity import workspaces
from foliot.storage.tx import Database, Role, Tx


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A message to post. `room` is an id or key; without it the job has its own room, or each run with `new_room`."""

    run_id: RunId
    job_id: JobId
    job_name: str
    kind: MessageKind
    text: str
    room: str | None = None
    new_room: bool = False


@dataclass(frozen=True, slots=True)
class StoredMessage:
    message: Message
    is_sent_on: bool  # to the webhook of its room


async def deliver(
    database: Database, workspace_id: WorkspaceId, letter: RunMessage, quotas: Quotas = UNLIMITED
) -> StoredMessage:
    """Post the message. A later attempt finds it and posts no other. Raise NotFound when the job may not see the room.

    `quotas` are the installation's; those of the workspace override them.
    """
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await rooms.find_message_of_run(tx, letter.run_id)
        if found is not None:
            return StoredMessage(found, is_sent_on=False)
        home = await workspaces.get(tx, workspace_id)
        quotas = quotas if home is None else quotas.overlaid(home.quotas)
        room = await _room(tx, letter, quotas)
        new = NewMessage(
            room.id, letter.kind, sender_of_job(letter.kind), letter.text, letter.run_id, letter.job_id
        )
        # Of two concurrent attempts, the second waits at the row of the room or message and then finds the message.
        sent = await rooms.append(tx, new)
        if sent is None:
            found = await rooms.find_message_of_run(tx, letter.run_id)
            if found is None:
                raise room_not_found(letter.room or str(room.id))
            return StoredMessage(found, is_sent_on=False)
        await check_message_quota(tx, quotas, sent)
        return StoredMessage(sent, is_sent_on=await queue_delivery(tx, sent))


async def post_notice(
    database: Database, workspace_id: WorkspaceId, named: str, text: str, quotas: Quotas = UNLIMITED
) -> Message:
    """Post a notification into a room. Raise NotFound without such a room."""
    async with database.tx(Role.APP, workspace_id) as tx:
        room = await get_notice_room(tx, named)
        home = await workspaces.get(tx, workspace_id)
        quotas = quotas if home is None else quotas.overlaid(home.quotas)
        sender = sender_of_job(MessageKind.SYSTEM_EVENT)
        sent = await rooms.append(tx, NewMessage(room.id, MessageKind.SYSTEM_EVENT, sender, text))
        if sent is None:
            raise NotFound(f"The room {room.name} was deleted.")
        await check_message_quota(tx, quotas, sent)
        await queue_delivery(tx, sent)
        return sent


async def _room(tx: Tx, letter: RunMessage, quotas: Quotas) -> Room:
    """Find or create the room. A job of an agent may write only where its agent may."""
    agent = await agent_of_job(tx, letter.job_id)
    if letter.room is None:
        key = key_of_run(letter.run_id) if letter.new_room else key_of_job(letter.job_id)
        wanted = NewRoom(letter.job_name, key, () if agent is None else (agent,), letter.job_id)
        found = await rooms.find_by_key(tx, key)
        if found is None:
            if await rooms.insert(tx, wanted) is not None:
                await check_room_quota(tx, quotas)
            found = await rooms.find_by_key(tx, key)
        assert found is not None, "the key is there, by us or by another attempt"
        return found
    found = await find_room(tx, letter.room, agent)
    if found is None:
        raise room_not_found(letter.room)
    return found
