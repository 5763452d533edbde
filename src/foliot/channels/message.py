"""Map a message to its JSON shape. The API and webhooks share it, so it is neither's own."""

from __future__ import annotations

from foliot.domain.rooms import Message
from foliot.wire.rooms import MessageOut, SenderOut


def message_out(message: Message) -> MessageOut:
    sender = message.sender
    return MessageOut.from_value(
        message,
        kind=message.kind.value,
        sender=SenderOut(kind=sender.kind.value, id=sender.id, name=sender.name),
    )
