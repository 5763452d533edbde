"""Record what became of a delivery to a channel: its health, refused addresses and thread, within the courier's transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foliot.domain.access import Actor
from foliot.domain.delivery import (
    Accepted,
    Answered,
    Came,
    Dead,
    Delivered,
    LeasedDelivery,
    PartlyAccepted,
    Rejected,
    TryAgain,
    Undeliverable,
)
from foliot.domain.ids import ChannelId
from foliot.domain.notifications.channel import ChannelKind, RefusedAddress
from foliot.domain.notifications.content import NoticeContent
from foliot.domain.notifications.notice import NoticeEvent
from foliot.services.identity.audit_steps import append_audit
from foliot.storage.notifications import channels, deliveries, incidents, notices
from foliot.storage.notifications.deliveries import DeliveryOwner
from foliot.storage.notifications.notices import NewNotice
from foliot.storage.tx import Tx

log = logging.getLogger(__name__)
COURIER = Actor("courier")


@dataclass(frozen=True, slots=True)
class NoticeAttachment:
    name: str
    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OutgoingNotice:
    """A message to send through a channel. `config` holds the values of secrets."""

    taken: LeasedDelivery
    kind: ChannelKind
    config: Mapping[str, Any] = field(repr=False)
    content: NoticeContent = field(repr=False)
    recipients: tuple[str, ...] = ()
    thread: str | None = None
    attachments: tuple[NoticeAttachment, ...] = ()
    masks: tuple[str, ...] = field(default=(), repr=False)  # values of secrets, which no answer may show


async def lock_channel_of(tx: Tx, taken: LeasedDelivery) -> DeliveryOwner | None:
    """Lock the channel of a delivery: it owns the ordering keys of its threads."""
    owner = await deliveries.find_owner(tx, taken.id)
    if owner is not None:
        await channels.lock(tx, owner.channel_id)
    return owner


async def record_notice(
    tx: Tx, taken: LeasedDelivery, owner: DeliveryOwner, came: Came, goes_on: Delivered | TryAgain | Dead
) -> None:
    if isinstance(came, Accepted | Rejected | PartlyAccepted):
        await deliveries.set_answer(tx, taken.id, came.sentence)
        await _note_refused(tx, owner.channel_id, [RefusedAddress(*each) for each in came.refused])
    elif isinstance(came, Answered):
        await deliveries.set_answer(tx, taken.id, came.sentence)
    if isinstance(came, PartlyAccepted):
        await deliveries.set_recipients(tx, taken.id, came.left)
    if isinstance(came, Accepted) and came.thread and owner.incident_id is not None:
        await incidents.set_thread(tx, owner.incident_id, owner.channel_id, came.thread)
    match goes_on:
        case Delivered():
            await channels.record_success(tx, owner.channel_id)
        case _ if isinstance(came, Undeliverable):
            pass  # the peer did not fail
        case TryAgain(why=why) | Dead(why=why, stops=False):
            await channels.record_failure(tx, owner.channel_id, why)
        case Dead(why=why):
            await _disable(tx, owner.channel_id, why)


async def _note_refused(tx: Tx, channel_id: ChannelId, refused: list[RefusedAddress]) -> None:
    if not refused:
        return
    await channels.add_refused(tx, channel_id, refused)
    found = await channels.get(tx, channel_id)
    for each in refused:
        facts = {"address": each.address, "reason": each.reason}
        if found is not None:
            name = f"address {each.address} of channel {found.definition.name}"
            await _notice_disabled(tx, channel_id, name, each.reason)
        await append_audit(tx, "channel.address_disabled", ("channel", channel_id), COURIER, after=facts)
        log.warning("channel.address_disabled", extra={"channel": str(channel_id), "reason": each.reason})


async def _disable(tx: Tx, channel_id: ChannelId, why: str) -> None:
    """Stop a channel whose peer refuses every message, where people see it: on the channel, in the audit and as a notice."""
    await channels.record_failure(tx, channel_id, why, disables=True)
    await append_audit(tx, "channel.disabled", ("channel", channel_id), COURIER, after={"reason": why})
    found = await channels.get(tx, channel_id)
    if found is not None:
        await _notice_disabled(tx, channel_id, f"channel {found.definition.name}", why)
    log.warning("channel.disabled", extra={"channel": str(channel_id), "reason": why})


async def _notice_disabled(tx: Tx, channel_id: ChannelId, name: str, why: str) -> None:
    assert tx.workspace_id is not None
    facts = {"name": name, "reason": why, "subject": f"channel:{channel_id}"}
    await notices.insert(tx, [NewNotice(tx.workspace_id, NoticeEvent.CHANNEL_DISABLED, facts=facts)])
