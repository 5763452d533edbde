"""Send what the courier takes: messages of rooms by their webhooks, notices by the channel of their kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from foliot.channels.webhook import WebhookChannel
from foliot.domain.delivery import Accepted, Came, PartlyAccepted, Rejected
from foliot.domain.masking import Masks
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
        return _masked(await send(parcel), Masks(parcel.masks))


def _masked(came: Came, masks: Masks) -> Came:
    """Hide values of secrets that the peer repeats in its answer: everybody in the workspace reads the log of deliveries."""
    if not masks:
        return came
    if isinstance(came, Accepted | PartlyAccepted | Rejected):
        refused = tuple((address, masks.text(reason)) for address, reason in came.refused)
        return replace(came, sentence=masks.text(came.sentence), refused=refused)
    return replace(came, sentence=masks.text(came.sentence))
