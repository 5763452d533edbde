"""Chat rooms and their messages. An agent finds only the rooms that list it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.domain.ids import JobId, MessageId, PrincipalId, RoomId, RunId
from foliot.domain.rooms import Message, MessageKind, Room, Sender
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class NewRoom:
    name: str
    key: str | None = None
    agents: tuple[PrincipalId, ...] = ()
    job_id: JobId | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    room_id: RoomId
    kind: MessageKind
    sender: Sender
    text: str
    run_id: RunId | None = None
    job_id: JobId | None = None


async def insert(tx: Tx, room: NewRoom) -> RoomId | None:
    """Insert the room and return its id; None if the key is taken."""
    room_id = RoomId(tx.new_id())
    params = {
        "id": room_id,
        "key": room.key,
        "name": room.name,
        "agents": list(room.agents),
        "job_id": room.job_id,
    }
    return room_id if await tx.execute(sql.rooms.insert, params) else None


async def get(tx: Tx, room_id: RoomId, agent: PrincipalId | None = None) -> Room | None:
    return await tx.fetch_one_as(Room, sql.rooms.get, {"id": room_id, "agent": agent})


async def find_by_key(tx: Tx, key: str, agent: PrincipalId | None = None) -> Room | None:
    return await tx.fetch_one_as(Room, sql.rooms.find_by_key, {"key": key, "agent": agent})


async def page(
    tx: Tx, before: UUID, limit: int, agent: PrincipalId | None = None, key: str | None = None
) -> list[Room]:
    """List rooms, newest first."""
    params = {"before": before, "limit": limit, "agent": agent, "key": key}
    return await tx.fetch_as(Room, sql.rooms.page, params)


async def lock(tx: Tx, room_id: RoomId) -> Room | None:
    """Lock the room, then read it: its webhook may have changed while the lock was waited for."""
    locked = await tx.fetch_one_as(RoomId, sql.rooms.lock, {"id": room_id})
    return None if locked is None else await get(tx, room_id)


async def change(tx: Tx, room: Room) -> None:
    await tx.execute(sql.rooms.update, {"id": room.id, "name": room.name, "agents": list(room.agents)})


async def delete(tx: Tx, room_id: RoomId) -> None:
    """Delete the room and its messages."""
    await tx.execute(sql.rooms.delete, {"id": room_id})


async def list_agents(tx: Tx, ids: Sequence[PrincipalId]) -> frozenset[PrincipalId]:
    """Return those of these principals that are active agents."""
    return frozenset(await tx.fetch_as(PrincipalId, sql.rooms.list_agents, {"ids": list(ids)}))


async def count(tx: Tx, most: int) -> int:
    """Count the rooms of the workspace, up to `most`."""
    return await tx.fetch_value(int, sql.rooms.count, {"most": most})


async def append(tx: Tx, message: NewMessage) -> Message | None:
    """Append a message; None if the room is deleted or the run has its message already."""
    message_id = MessageId(tx.new_id())
    params = {
        "id": message_id,
        "room_id": message.room_id,
        "kind": message.kind.value,
        "sender": message.sender.kind.value,
        "sender_id": message.sender.id,
        "text": message.text,
        "run_id": message.run_id,
        "job_id": message.job_id,
    }
    seq = await tx.fetch_one_as(int, sql.rooms.append_message, params)
    if seq is None:
        return None
    return Message(
        message_id,
        message.room_id,
        seq,
        message.kind,
        message.sender,
        message.text,
        message.run_id,
        message.job_id,
        tx.now,
    )


async def find_oldest_seq(tx: Tx, room_id: RoomId) -> int | None:
    return await tx.fetch_one_as(int, sql.rooms.find_oldest_seq, {"room_id": room_id})


async def list_messages(tx: Tx, room_id: RoomId, after: int, limit: int) -> list[Message]:
    params = {"room_id": room_id, "after": after, "limit": limit}
    return await tx.fetch_as(Message, sql.rooms.list_messages, params)


async def find_message_of_run(tx: Tx, run_id: RunId) -> Message | None:
    return await tx.fetch_one_as(Message, sql.rooms.find_message_of_run, {"run_id": run_id})


async def prune(tx: Tx, before: datetime, limit: int) -> tuple[int, int]:
    """Delete old messages of all workspaces and the empty rooms of runs, and return both numbers."""
    params = {"before": before, "limit": limit}
    return await tx.execute(sql.rooms.prune_messages, params), await tx.execute(sql.rooms.prune, params)
