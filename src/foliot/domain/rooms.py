"""Chat rooms and messages: jobs write to people and agents, who can answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from foliot.domain.access import Principal, PrincipalKind
from foliot.domain.ids import JobId, MessageId, PrincipalId, RoomId, RunId

LONGEST_TEXT = 64 * 1024  # characters


class MessageKind(StrEnum):
    MESSAGE = "message"
    SYSTEM_EVENT = "system_event"  # a report; no answer is expected


class SenderKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    SERVICE = "service"
    SYSTEM = "system"  # Foliot itself


@dataclass(frozen=True, slots=True)
class Sender:
    kind: SenderKind
    id: PrincipalId | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Hook:
    """The webhook that a room's messages are sent to. `receiver` is host and port of `url`; `secret` names the signing secret."""

    url: str
    receiver: str
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """A room's hook and its state. `stopped_at` is set when the receiver answered 410."""

    hook: Hook
    delivered_seq: int | None = None
    delivered_at: datetime | None = None
    failing_since: datetime | None = None
    error: str | None = None
    stopped_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A chat room. `agents` may see it; other members see every room. `job_id` is the job it was created for."""

    id: RoomId
    key: str | None
    name: str
    agents: tuple[PrincipalId, ...]
    job_id: JobId | None
    last_seq: int
    last_message_at: datetime | None
    created_at: datetime
    webhook: Webhook | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `seq` is its position in the room; it rises and may have gaps."""

    id: MessageId
    room_id: RoomId
    seq: int
    kind: MessageKind
    sender: Sender
    text: str
    run_id: RunId | None
    job_id: JobId | None
    sent_at: datetime

    @property
    def expects_reply(self) -> bool:
        """Return whether agents should answer. Messages of agents expect no answer, or two agents would talk for ever."""
        return self.kind is MessageKind.MESSAGE and self.sender.kind is not SenderKind.AGENT


def sender_of(principal: Principal) -> Sender:
    """Return the sender. An installation administrator counts as a person."""
    kind = SenderKind.USER if principal.kind is PrincipalKind.SYSTEM else SenderKind(principal.kind.value)
    return Sender(kind, principal.id, principal.name)


def sender_of_job(kind: MessageKind) -> Sender:
    """Return the sender of a job's message: its owner, or the system for reports."""
    return Sender(SenderKind.USER if kind is MessageKind.MESSAGE else SenderKind.SYSTEM)


def key_of_job(job_id: JobId) -> str:
    return f"job:{job_id}"


def key_of_run(run_id: RunId) -> str:
    return f"run:{run_id}"
