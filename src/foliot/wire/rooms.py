"""Rooms, their messages and webhooks on the wire."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import Name
from foliot.wire.shape import SECRET_NAME, VISIBLE, Shape, described

KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
RoomKey = Annotated[
    str,
    StringConstraints(
        pattern=described(
            rf"^{KEY.pattern}$",
            "The key of a room has only lower-case letters, digits and . _ -, at most 100, "
            "and begins with a letter or digit.",
        )
    ),
]
MessageKind = Literal["message", "system_event"]
LONGEST_WAIT = 25  # seconds: below the timeouts of clients and proxies
MOST_AGAIN = 1_000  # deliveries


class SecretNamed(Shape):
    secret: str = Field(pattern=SECRET_NAME, examples=["standup-hook"])


class WebhookIn(Shape):
    url: str = Field(
        min_length=1,
        max_length=8_000,
        description="Each message is sent there by POST, in order, until it is answered with a 2xx code.",
        examples=["https://example.test/hook"],
    )
    secret: SecretNamed | None = Field(
        default=None,
        description="The secret of the workspace to sign with, by Standard Webhooks; unsigned without it.",
    )


class WebhookChange(Shape):
    url: str | None = Field(default=None, min_length=1, max_length=8_000)
    secret: SecretNamed | None = Field(default=None, description="Null sends unsigned.")


class WebhookOut(Shape):
    url: str
    secret: SecretNamed | None
    delivered_seq: int | None = Field(description="The last message that was received.")
    delivered_at: Instant | None
    failing_since: Instant | None = Field(description="Null without failures.")
    last_error: str | None
    stopped_at: Instant | None = Field(
        description="When the receiver answered 410: nothing is sent until the webhook is set again."
    )


class RoomIn(Shape):
    name: Name
    key: RoomKey | None = Field(
        default=None, description="A name for jobs to use instead of its id.", examples=["support"]
    )
    agents: list[Id] = Field(
        default=[],
        max_length=100,
        description="The agents that may see it and write in it. Other members of the workspace see every room.",
    )
    webhook: WebhookIn | None = Field(default=None, description="Not for agents.")


class RoomChange(Shape):
    name: Name | None = None
    agents: list[Id] | None = Field(default=None, max_length=100, description="Replaces the present list.")
    webhook: WebhookChange | None = Field(
        default=None, description="Changes the given fields and restarts the webhook; null removes it."
    )


class RoomOut(Shape):
    id: Id
    key: str | None
    name: str
    agents: list[Id]
    job_id: Id | None = Field(description="The job that it was created for.")
    last_seq: int = Field(description="The number of the newest message; 0 without one.")
    last_message_at: Instant | None
    created_at: Instant
    webhook: WebhookOut | None = Field(default=None, description="Null for agents.")


class MessageIn(Shape):
    text: str = Field(min_length=1, max_length=64 * 1024, pattern=VISIBLE)
    kind: MessageKind = "message"


class SenderOut(Shape):
    kind: Literal["user", "agent", "service", "system"]
    id: Id | None
    name: str | None


class MessageOut(Shape):
    id: Id
    room_id: Id
    seq: int = Field(description="Its number in the room. Numbers rise and may have gaps.")
    kind: MessageKind
    sender: SenderOut
    text: str
    expects_reply: bool = Field(description="True for messages that are not from an agent.")
    run_id: Id | None = Field(description="The run that posted it.")
    job_id: Id | None
    sent_at: Instant


class MessagesOut(Shape):
    items: list[MessageOut]
    next_cursor: str | None = Field(
        description="Send it as `cursor` for the next page; null at the end. To look again later, send the last `seq`."
    )


class RoomNamed(Shape):
    id: Id
    key: str | None
    name: str


class MessageSent(Shape):
    """The body of a webhook request."""

    type: Literal["room.message"]
    timestamp: Instant
    room: RoomNamed
    data: MessageOut


class DeliveryOut(Shape):
    id: Id = Field(description="Sent as `webhook-id`, the same at every attempt.")
    seq: int = Field(description="The number of the message.")
    state: Literal["waiting", "sending", "delivered", "dead"]
    attempts: int
    next_attempt_at: Instant | None = Field(
        description="Null if it has ended, is being sent, or waits behind earlier messages."
    )
    last_status: int | None = Field(description="The status code of the last answer.")
    last_error: str | None
    created_at: Instant
    ended_at: Instant | None


class RedeliverIn(Shape):
    deliveries: list[Id] | None = Field(
        default=None,
        max_length=MOST_AGAIN,
        description=f"Dead ones to send again; by default the oldest {MOST_AGAIN:,} of them.",
    )


class RedeliveredOut(Shape):
    redelivered: int
