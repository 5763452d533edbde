"""`webhook`: send a room's message as one signed POST, by Standard Webhooks. Any 2xx is received; redirects are not followed.

The id stays the same when a message is sent again because an answer got lost: receivers use it to handle the message once.
"""

from __future__ import annotations

import asyncio

from foliot import __version__
from foliot.clock import Clock, SystemClock
from foliot.domain.delivery import Answered, Came, Unanswered
from foliot.domain.rooms import Message
from foliot.domain.signatures import InvalidSigningSecret, signature_headers
from foliot.egress.client import (
    AddressRefused,
    Egress,
    HttpAnswer,
    NoAnswer,
    OutgoingRequest,
    reason_of,
    retry_after,
)
from foliot.egress.url import InvalidTarget, read_target
from foliot.services.messaging.courier import LEASE, OutgoingMessage
from foliot.wire.rooms import MessageOut, MessageSent, RoomNamed, SenderOut

WITHIN = LEASE.total_seconds() / 2  # for the whole exchange, names and connections included
KEPT = 1024  # bytes of an answer, which nobody reads


def message_out(message: Message) -> MessageOut:
    """Return the JSON shape of a message, which the API shows too."""
    sender = message.sender
    return MessageOut.from_value(
        message,
        kind=message.kind.value,
        sender=SenderOut(kind=sender.kind.value, id=sender.id, name=sender.name),
    )


class WebhookChannel:
    def __init__(self, egress: Egress, clock: Clock | None = None) -> None:
        self._egress = egress
        self._clock = clock or SystemClock()

    async def send(self, parcel: OutgoingMessage) -> Came:
        """Send once. Return every failure, without the path of the address, which often holds tokens."""
        try:
            outgoing = self._request(parcel)
        except InvalidTarget as error:
            return Unanswered(f"{error.message} {error.hint}")
        except InvalidSigningSecret as error:
            return Unanswered(str(error))
        try:
            async with asyncio.timeout(WITHIN) as deadline:
                answer = await self._egress.send(outgoing, KEPT)
        except AddressRefused as error:
            return Unanswered(error.public)
        except NoAnswer as error:
            return Unanswered(str(error))
        except TimeoutError:
            if not deadline.expired():
                raise
            return Unanswered(f"The receiver did not answer within {WITHIN:g} s.")
        return self._answered(answer)

    def close(self) -> None:
        self._egress.close()

    def _request(self, parcel: OutgoingMessage) -> OutgoingRequest:
        target = read_target(parcel.url)
        body = body_of(parcel)
        now, delivery_id = self._clock.now(), str(parcel.taken.id)
        headers = {
            "user-agent": f"foliot/{__version__}",
            "accept": "*/*",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "foliot-attempt": str(parcel.taken.attempts),
            **signature_headers(parcel.secrets, delivery_id, now, body),
        }
        return OutgoingRequest("POST", target, tuple(headers.items()), body, str(parcel.taken.workspace_id))

    def _answered(self, answer: HttpAnswer) -> Answered:
        message = f"The receiver answered {answer.status} {reason_of(answer)}".rstrip() + "."
        return Answered(answer.status, message, retry_after(answer, self._clock.now()))


def body_of(parcel: OutgoingMessage) -> bytes:
    """Return the body: the same bytes at every try, unless the room or the sender is renamed."""
    message = message_out(parcel.message)
    room = RoomNamed(id=parcel.message.room_id, key=parcel.room_key, name=parcel.room_name)
    sent = MessageSent(type="room.message", timestamp=message.sent_at, room=room, data=message)
    return sent.model_dump_json().encode()
