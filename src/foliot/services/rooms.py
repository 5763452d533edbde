"""What can be done with rooms: make them, give them to agents, read them, write in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import PrincipalId, RoomId
from foliot.domain.rooms import Message, MessageKind, Room, sender_of
from foliot.services.access import Caller
from foliot.services.in_hand import no_such, note
from foliot.services.paging import LAST
from foliot.storage import rooms
from foliot.storage.rooms import NewMessage, NewRoom
from foliot.storage.tx import Database, Role, Tx

__all__ = ["Changes", "MessagePage", "NewRoom", "change", "create", "delete", "get", "listed", "post", "read"]


@dataclass(frozen=True, slots=True)
class Changes:
    name: str | None = None
    agents: tuple[PrincipalId, ...] | None = None


@dataclass(frozen=True, slots=True)
class MessagePage:
    items: Sequence[Message]
    is_more: bool


async def create(database: Database, caller: Caller, wanted: NewRoom) -> Room:
    """A room that an agent makes is its own, and it may give it to nobody else."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        if caller.only_owner is not None:
            _only(caller.only_owner, wanted.agents)
            wanted = replace(wanted, agents=(caller.only_owner,))
        else:
            await _check_agents(tx, wanted.agents)
        room_id = await rooms.insert(tx, wanted)
        if room_id is None:
            raise Conflict(
                f'There is a room with the key "{wanted.key}" already.', hint="Choose another key."
            )
        room = await rooms.get(tx, room_id)
        assert room is not None
        await note(tx, "room.created", ("room", room_id), caller.actor, after=_told(room))
        return room


async def listed(
    database: Database, caller: Caller, before: UUID = LAST, limit: int = 50, key: str | None = None
) -> list[Room]:
    """Newest first; to an agent, those that it was given."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        return await rooms.page(tx, before, limit, caller.only_owner, key)


async def get(database: Database, caller: Caller, room_id: RoomId) -> Room:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        return await _found(tx, caller, room_id)


async def change(database: Database, caller: Caller, room_id: RoomId, wanted: Changes) -> Room:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        before = await rooms.lock(tx, room_id)
        if before is None:
            raise no_such("room")
        agents = before.agents if wanted.agents is None else wanted.agents
        await _check_agents(tx, [each for each in agents if each not in before.agents])
        after = replace(
            before, name=before.name if wanted.name is None else wanted.name, agents=tuple(agents)
        )
        if after != before:
            await rooms.change(tx, after)
            thing = ("room", room_id)
            await note(tx, "room.changed", thing, caller.actor, before=_told(before), after=_told(after))
        return after


async def delete(database: Database, caller: Caller, room_id: RoomId) -> None:
    """With everything that was written in it."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        room = await rooms.lock(tx, room_id)
        if room is None:
            raise no_such("room")
        await rooms.delete(tx, room_id)
        told = {**_told(room), "last_seq": room.last_seq}
        await note(tx, "room.deleted", ("room", room_id), caller.actor, before=told)


async def post(
    database: Database, caller: Caller, room_id: RoomId, text: str, kind: MessageKind = MessageKind.MESSAGE
) -> Message:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        await _found(tx, caller, room_id)
        new = NewMessage(room_id, kind, sender_of(caller.holder.principal), text)
        sent = await rooms.append(tx, new)
        if sent is None:
            raise no_such("room")
        told = {"room_id": str(room_id), "seq": sent.seq, "kind": kind.value}
        await note(tx, "message.posted", ("message", sent.id), caller.actor, after=told)
        return sent


async def read(
    database: Database, caller: Caller, room_id: RoomId, *, after: int = 0, limit: int = 50
) -> MessagePage:
    """The messages behind number `after`, in order."""
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        await _found(tx, caller, room_id)
        found = await rooms.messages_after(tx, room_id, after, limit + 1)
    return MessagePage(found[:limit], len(found) > limit)


async def _found(tx: Tx, caller: Caller, room_id: RoomId) -> Room:
    room = await rooms.get(tx, room_id, caller.only_owner)
    if room is None:
        raise no_such("room")
    return room


async def _check_agents(tx: Tx, agents: Sequence[PrincipalId]) -> None:
    known = await rooms.agents_among(tx, agents) if agents else frozenset()
    for place, each in enumerate(agents):
        if each not in known:
            raise _no_agent(place)


def _only(agent: PrincipalId, wanted: Sequence[PrincipalId]) -> None:
    """To an agent, others are not there."""
    for place, each in enumerate(wanted):
        if each != agent:
            raise _no_agent(place)


def _no_agent(place: int) -> Invalid:
    return Invalid(
        "There is no such agent.",
        pointer=f"/agents/{place}",
        hint="Rooms are given to agents by their id; people and services see every room.",
    )


def _told(room: Room) -> Mapping[str, Any]:
    return {"name": room.name, "key": room.key, "agents": [str(each) for each in room.agents]}
