"""What leaves the house, and how it goes on after each try: delivered, tried again, given up, or never again.

Tries go on for a day, ever more seldom, whatever the reason was: receivers are mended, secrets set and networks opened. What is
older than that when its turn comes, since others of its ordering_key stood before it, is still tried once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from foliot.domain.ids import DeliveryId, WorkspaceId

FIRST_WAIT, FACTOR, LONGEST_WAIT = timedelta(seconds=5), 4, timedelta(hours=6)
PATIENCE = timedelta(hours=24)  # since sending began
GONE = 410


class Kind(StrEnum):
    """What a delivery is about."""

    ROOM_MESSAGE = "room.message"  # ordering_key: the room; place: the number of the message


class DeliveryState(StrEnum):
    WAITING = "waiting"  # for its time, or behind others of its ordering_key
    SENDING = "sending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery in the hands of a courier, until its lease ends. `attempts` counts the one that begins now."""

    workspace_id: WorkspaceId
    id: DeliveryId
    kind: Kind
    ordering_key: UUID
    position: int
    receiver: str
    sending_since: datetime
    attempts: int
    fence: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """As it stands. `due_at` is None for what has ended, is being sent, or waits behind others."""

    id: DeliveryId
    position: int
    state: DeliveryState
    attempts: int
    due_at: datetime | None
    status: int | None  # of the last answer
    error: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Answered:
    """`sentence` tells the answer, `asked` is how long the receiver wants to be left alone: heeded up to the longest wait."""

    status: int
    sentence: str
    asked: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Nothing was sent, or nothing came back."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Void:
    """There is nothing to send any more, or nowhere to send it."""

    sentence: str


Came = Answered | Unanswered | Void


@dataclass(frozen=True, slots=True)
class Delivered:
    status: int


@dataclass(frozen=True, slots=True)
class Again:
    at: datetime
    status: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Dead:
    """With `stops`, whatever else waits for this receiver is given up as well."""

    status: int | None
    why: str
    stops: bool = False


def after(came: Came, taken: Taken, now: datetime, chance: float) -> Delivered | Again | Dead:
    """How a delivery goes on. `chance`, from 0 to 1, keeps those that failed together from coming back together."""
    match came:
        case Answered(status=status) if 200 <= status < 300:
            return Delivered(status)
        case Answered(status=status, sentence=sentence) if status == GONE:
            return Dead(status, sentence, stops=True)
        case Answered(status=status, sentence=sentence, asked=asked):
            wait = max(_wait(taken.attempts, chance), min(asked or timedelta(0), LONGEST_WAIT))
            return _again(taken, now, wait, status, sentence)
        case Unanswered(sentence=sentence):
            return _again(taken, now, _wait(taken.attempts, chance), None, sentence)
        case Void(sentence=sentence):
            return Dead(None, sentence)


def _again(taken: Taken, now: datetime, wait: timedelta, status: int | None, why: str) -> Again | Dead:
    """The last try stands at the end of the patience, however long the wait before it should have been."""
    until = taken.sending_since + PATIENCE
    return Dead(status, why) if now >= until else Again(min(now + wait, until), status, why)


def _wait(attempts: int, chance: float) -> timedelta:
    grown: int = FACTOR ** min(attempts - 1, 10)
    return min(FIRST_WAIT * grown, LONGEST_WAIT) * (0.75 + chance / 2)
