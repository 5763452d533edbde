"""`webhook`: send a room's message as one signed POST, by Standard Webhooks. Any 2xx is received; redirects are not followed.

The id stays the same when a message is sent again because an answer got lost: receivers use it to handle the message once.
"""

from __future__ import annotations

from foliot.channels.http_request import post
from foliot.clock import Clock, SystemClock
from foliot.domain.delivery import Answered, Came, Rejected, Unanswered
from foliot.domain.rooms import Message
from foliot.domain.signatures import InvalidSigningSecret, signature_headers
from foliot.egress.client import Egress, HttpAnswer, reason_of, retry_after
from foliot.services.messaging.courier import OutgoingMessage
from foliot.wire.rooms import MessageOut, MessageSent, RoomNamed, SenderOut

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
        body, now = body_of(parcel), self._clock.now()
        try:
            signed = signature_headers(parcel.secrets, str(parcel.taken.id), now, body)
        except InvalidSigningSecret as error:
            return Unanswered(str(error))
        headers = {"content-type": "application/json", "foliot-attempt": str(parcel.taken.attempts), **signed}
        workspace = str(parcel.taken.workspace_id)
        match await post(self._egress, parcel.url, body, headers, keep=KEPT, workspace=workspace):
            case Unanswered() as nothing:
                return nothing
            case Rejected(sentence=sentence):  # the address cannot be read; it may be mended
                return Unanswered(sentence)
            case answer:
                return self._answered(answer)

    def close(self) -> None:
        self._egress.close()

    def _answered(self, answer: HttpAnswer) -> Answered:
        message = f"The receiver answered {answer.status} {reason_of(answer)}".rstrip() + "."
        return Answered(answer.status, message, retry_after(answer, self._clock.now()))


def body_of(parcel: OutgoingMessage) -> bytes:
    """Return the body: the same bytes at every try, unless the room or the sender is renamed."""
    message = message_out(parcel.message)
    room = RoomNamed(id=parcel.message.room_id, key=parcel.room_key, name=parcel.room_name)
    sent = MessageSent(type="room.message", timestamp=message.sent_at, room=room, data=message)
    return sent.model_dump_json().encode()
