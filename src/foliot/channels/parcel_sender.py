"""Send what the courier takes: messages of rooms by their webhooks, notices by the channel of their kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from foliot.channels.webhook import WebhookChannel
from foliot.domain.delivery import Came, Rejected
from foliot.domain.notifications.channel import ChannelKind
from foliot.services.messaging.courier import OutgoingMessage, OutgoingNotice, Parcel

SendNotice = Callable[[OutgoingNotice], Awaitable[Came]]


class ParcelSender:
    def __init__(self, webhooks: WebhookChannel, notices: Mapping[ChannelKind, SendNotice]) -> None:
        self._webhooks = webhooks
        self._notices = notices

    async def send(self, parcel: Parcel) -> Came:
        if isinstance(parcel, OutgoingMessage):
            return await self._webhooks.send(parcel)
        send = self._notices.get(parcel.kind)
        if send is None:
            return Rejected(None, f"Channels of the kind {parcel.kind.value} are not served here.")
        return await send(parcel)
