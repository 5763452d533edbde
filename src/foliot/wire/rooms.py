"""Rooms and messages on the wire."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import Name
from foliot.wire.shape import Shape

KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
RoomKey = Annotated[str, StringConstraints(pattern=rf"^{KEY.pattern}$")]
MessageKind = Literal["message", "system_event"]
LONGEST_WAIT = 25  # seconds: less than what clients and proxies wait for


class RoomIn(Shape):
    name: Name
    key: RoomKey | None = Field(
        default=None, description="What jobs may name it by instead of its id.", examples=["support"]
    )
    agents: list[Id] = Field(
        default=[],
        max_length=100,
        description="The agents that may see it and write in it. Other members of the workspace see every room.",
    )


class RoomChange(Shape):
    name: Name | None = None
    agents: list[Id] | None = Field(default=None, max_length=100, description="In place of those it has.")


class RoomOut(Shape):
    id: Id
    key: str | None
    name: str
    agents: list[Id]
    job_id: Id | None = Field(description="The job that it was made for.")
    last_seq: int = Field(description="The number of the newest message; 0 where there is none.")
    last_message_at: Instant | None
    created_at: Instant


class MessageIn(Shape):
    text: str = Field(min_length=1, max_length=64 * 1024, pattern=r"\S")
    kind: MessageKind = "message"


class SenderOut(Shape):
    kind: Literal["user", "agent", "service", "system"]
    id: Id | None
    name: str | None


class MessageOut(Shape):
    id: Id
    room_id: Id
    seq: int = Field(description="Its place in the room. Places rise; some may be missing.")
    kind: MessageKind
    sender: SenderOut
    text: str
    expects_reply: bool = Field(description="A message, and not from an agent.")
    run_id: Id | None = Field(description="The run that left it.")
    job_id: Id | None
    sent_at: Instant


class MessagesOut(Shape):
    items: list[MessageOut]
    next_cursor: str | None = Field(
        description="Send it as `cursor` for the next page; null at the end. To look again later, send the last `seq`."
    )
