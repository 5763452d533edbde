"""Map a message to its JSON shape. The API and webhooks share it, so it is neither's own."""

from __future__ import annotations

from foliot.domain.rooms import Message
from foliot.wire.rooms import MessageOut, SenderOut


def message_out(message: Message) -> MessageOut:
    sender = message.sender
    return MessageOut(
        id=message.id,
        room_id=message.room_id,
        seq=message.seq,
        kind=message.kind.value,
        sender=SenderOut(kind=sender.kind.value, id=sender.id, name=sender.name),
        text=message.text,
        expects_reply=message.expects_reply,
        run_id=message.run_id,
        job_id=message.job_id,
        sent_at=message.sent_at,
    )
