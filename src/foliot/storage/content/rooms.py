"""Rooms and messages as rows. For an agent, rooms it was not given are not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.domain.ids import JobId, MessageId, PrincipalId, RoomId, RunId
from foliot.domain.rooms import Message, MessageKind, Room, Sender, SenderKind
from foliot.storage.outbox import webhooks
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


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
    """None where the key is taken."""
    room_id = RoomId(tx.new_id())
    params = {
        "workspace_id": tx.workspace_id,
        "id": room_id,
        "key": room.key,
        "name": room.name,
        "agents": list(room.agents),
        "job_id": room.job_id,
        "now": tx.now,
    }
    return room_id if await tx.execute(sql.rooms.insert, params) else None


async def get(tx: Tx, room_id: RoomId, agent: PrincipalId | None = None) -> Room | None:
    row = await tx.fetch_one(sql.rooms.get, {"id": room_id, "agent": agent})
    return None if row is None else _room(row)


async def by_key(tx: Tx, key: str, agent: PrincipalId | None = None) -> Room | None:
    params = {"workspace_id": tx.workspace_id, "key": key, "agent": agent}
    row = await tx.fetch_one(sql.rooms.by_key, params)
    return None if row is None else _room(row)


async def page(
    tx: Tx, before: UUID, limit: int, agent: PrincipalId | None = None, key: str | None = None
) -> list[Room]:
    """Newest first."""
    params = {
        "workspace_id": tx.workspace_id,
        "before": before,
        "limit": limit,
        "agent": agent,
        "key": key,
    }
    return [_room(row) for row in await tx.fetch(sql.rooms.page, params)]


async def lock(tx: Tx, room_id: RoomId) -> Room | None:
    """Read once it is locked: what was waited for may have changed its webhook."""
    row = await tx.fetch_one(sql.rooms.lock, {"id": room_id})
    return None if row is None else await get(tx, room_id)


async def change(tx: Tx, room: Room) -> None:
    await tx.execute(sql.rooms.change, {"id": room.id, "name": room.name, "agents": list(room.agents)})


async def delete(tx: Tx, room_id: RoomId) -> None:
    """With its messages."""
    await tx.execute(sql.rooms.delete, {"id": room_id})


async def agents_among(tx: Tx, ids: Sequence[PrincipalId]) -> frozenset[PrincipalId]:
    rows = await tx.fetch(sql.rooms.agents_among, {"ids": list(ids)})
    return frozenset(row["id"] for row in rows)


async def count(tx: Tx, most: int) -> int:
    """Of the workspace; `most` is where counting ends."""
    row = await tx.fetch_one(sql.rooms.count, {"workspace_id": tx.workspace_id, "most": most})
    return row["rooms"] if row else 0


async def append(tx: Tx, message: NewMessage) -> Message | None:
    """None where the room is gone, or where this run has its message already."""
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
        "now": tx.now,
    }
    row = await tx.fetch_one(sql.rooms.append_message, params)
    if row is None:
        return None
    return Message(
        message_id,
        message.room_id,
        row["seq"],
        message.kind,
        message.sender,
        message.text,
        message.run_id,
        message.job_id,
        tx.now,
    )


async def oldest_seq(tx: Tx, room_id: RoomId) -> int | None:
    row = await tx.fetch_one(sql.rooms.oldest_message_seq, {"room_id": room_id})
    return None if row is None else row["seq"]


async def messages_after(tx: Tx, room_id: RoomId, after: int, limit: int) -> list[Message]:
    params = {"room_id": room_id, "after": after, "limit": limit}
    return [message_in(row) for row in await tx.fetch(sql.rooms.list_messages, params)]


async def message_of_run(tx: Tx, run_id: RunId) -> Message | None:
    params = {"workspace_id": tx.workspace_id, "run_id": run_id}
    row = await tx.fetch_one(sql.rooms.message_of_run, params)
    return None if row is None else message_in(row)


async def prune(tx: Tx, before: datetime, limit: int) -> tuple[int, int]:
    """For the janitor, in all workspaces: how many messages went, and rooms of runs that were left empty by it."""
    params = {"before": before, "limit": limit}
    return await tx.execute(sql.rooms.prune_messages, params), await tx.execute(sql.rooms.prune, params)


def _room(row: Row) -> Room:
    return Room(
        id=row["id"],
        key=row["key"],
        name=row["name"],
        agents=tuple(row["agents"]),
        job_id=row["job_id"],
        last_seq=row["last_seq"],
        last_message_at=row["last_message_at"],
        created_at=row["created_at"],
        webhook=webhooks.webhook_in(row),
    )


def message_in(row: Row) -> Message:
    return Message(
        id=row["id"],
        room_id=row["room_id"],
        seq=row["seq"],
        kind=MessageKind(row["kind"]),
        sender=Sender(SenderKind(row["sender"]), row["sender_id"], row["sender_name"]),
        text=row["text"],
        run_id=row["run_id"],
        job_id=row["job_id"],
        sent_at=row["sent_at"],
    )
