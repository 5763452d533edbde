"""Outgoing deliveries, and the next step after each attempt: delivered, retry later, give up, or stop the receiver.

Attempts continue for a day with growing waits, whatever the error: receivers are repaired, secrets set and networks opened. A
delivery that is older than a day when its turn comes still gets one attempt.

Why: docs/decisions/903-chat-rooms-and-webhooks.md
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


class DeliveryKind(StrEnum):
    """The kind of content of a delivery."""

    ROOM_MESSAGE = "room.message"  # ordering_key: the room_id; place: the number of the message
    NOTICE = "notice"  # ordering_key: of the incident and the channel; its content is stored beside it


class DeliveryState(StrEnum):
    WAITING = "waiting"  # for its time, or behind others of its ordering_key
    SENDING = "sending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class LeasedDelivery:
    """A delivery that one courier holds until its lease ends. `attempts` includes the attempt that starts now."""

    workspace_id: WorkspaceId
    id: DeliveryId
    kind: DeliveryKind
    ordering_key: UUID
    position: int
    receiver: str
    sending_since: datetime
    attempts: int
    fence: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A stored delivery. `due_at` is None if it has ended, is being sent, or waits behind others."""

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
    """The receiver answered. `sentence` describes the answer; `asked` is the wait that the receiver requests."""

    status: int
    sentence: str
    asked: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Nothing was sent, or nothing came back."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """The delivery has no content or no receiver any more."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A channel's peer took the message. `thread` is the peer's name of its thread, `refused` are addresses that it refused for good."""

    status: int
    sentence: str
    thread: str | None = None
    refused: tuple[tuple[str, str], ...] = ()  # address and reason


@dataclass(frozen=True, slots=True)
class Rejected:
    """A channel's peer refused the message for good: another try would end the same. With `stops` it refuses every message."""

    status: int | None
    sentence: str
    stops: bool = False
    refused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PartlyAccepted:
    """A channel's peer took the message for some recipients or refused them for good; the others, `left`, are tried again."""

    sentence: str
    left: tuple[str, ...]
    status: int | None = None
    asked: timedelta | None = None
    refused: tuple[tuple[str, str], ...] = ()


Came = Answered | Unanswered | Undeliverable | Accepted | PartlyAccepted | Rejected


@dataclass(frozen=True, slots=True)
class Delivered:
    status: int


@dataclass(frozen=True, slots=True)
class TryAgain:
    at: datetime
    status: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Dead:
    """Give up. With `stops`, every other delivery to this receiver is given up too."""

    status: int | None
    why: str
    stops: bool = False


def after(came: Came, taken: LeasedDelivery, now: datetime, chance: float) -> Delivered | TryAgain | Dead:
    """Return the next step of a delivery. `chance`, from 0 to 1, spreads the retries of deliveries that failed together."""
    match came:
        case Answered(status=status) if 200 <= status < 300:
            return Delivered(status)
        case Answered(status=status, sentence=sentence) if status == GONE:
            return Dead(status, sentence, stops=True)
        case (
            Answered(status=status, sentence=sentence, asked=asked)
            | PartlyAccepted(status=status, sentence=sentence, asked=asked)
        ):
            wait = max(_wait(taken.attempts, chance), min(asked or timedelta(0), LONGEST_WAIT))
            return _again(taken, now, wait, status, sentence)
        case Unanswered(sentence=sentence):
            return _again(taken, now, _wait(taken.attempts, chance), None, sentence)
        case Undeliverable(sentence=sentence):
            return Dead(None, sentence)
        case Accepted(status=status):
            return Delivered(status)
        case Rejected(status=status, sentence=sentence, stops=stops):
            return Dead(status, sentence, stops=stops)


def _again(
    taken: LeasedDelivery, now: datetime, wait: timedelta, status: int | None, why: str
) -> TryAgain | Dead:
    """Wait before the next try. The last try comes at the end of the day, however long the wait would be."""
    until = taken.sending_since + PATIENCE
    return Dead(status, why) if now >= until else TryAgain(min(now + wait, until), status, why)


def _wait(attempts: int, chance: float) -> timedelta:
    grown: int = FACTOR ** min(attempts - 1, 10)
    return min(FIRST_WAIT * grown, LONGEST_WAIT) * (0.75 + chance / 2)
