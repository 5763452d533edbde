"""The channels of a node, and what its settings decide about notifications."""

from __future__ import annotations

import logging

from foliot.channels.apprise import AppriseChannel
from foliot.channels.email import EmailChannel, read_mail_url
from foliot.channels.http_request import post, sentence_of
from foliot.channels.notice_webhook import NoticeWebhookChannel
from foliot.channels.parcel_sender import ParcelSender
from foliot.channels.room import RoomChannel
from foliot.channels.slack import SlackChannel
from foliot.channels.webhook import WebhookChannel
from foliot.channels.whatsapp import WhatsappChannel
from foliot.domain.notifications.channel import ChannelKind
from foliot.egress.client import Egress, HttpAnswer
from foliot.engine.watcher import Ping
from foliot.services.notifications.dispatch import NotifierPolicy
from foliot.settings import Settings
from foliot.storage.tx import Database

log = logging.getLogger(__name__)


def sender_of(settings: Settings, egress: Egress, database: Database) -> ParcelSender:
    server = None if settings.smtp_url is None else read_mail_url(settings.smtp_url, settings.smtp_from)
    return ParcelSender(
        WebhookChannel(egress),
        {
            ChannelKind.EMAIL: EmailChannel(egress, server).send,
            ChannelKind.SLACK: SlackChannel(egress).send,
            ChannelKind.WHATSAPP: WhatsappChannel(egress).send,
            ChannelKind.WEBHOOK: NoticeWebhookChannel(egress).send,
            ChannelKind.ROOM: RoomChannel(database).send,
            ChannelKind.APPRISE: AppriseChannel().send,
        },
    )


def ping_of(settings: Settings, egress: Egress) -> Ping | None:
    """Return the dead man's switch: a request that an outside monitor misses when the installation is silent."""
    url = settings.watcher_ping_url
    if url is None:
        return None

    async def ping() -> None:
        answer = await post(egress, url, b"", {"content-type": "text/plain"})
        if not isinstance(answer, HttpAnswer):
            log.warning("watcher.ping_failed", extra={"reason": answer.sentence})
        elif answer.status >= 300:
            log.warning("watcher.ping_failed", extra={"reason": sentence_of(answer)})

    return ping


def notifier_policy_of(settings: Settings, url: str | None) -> NotifierPolicy:
    """`url` is the address that the node listens on, for links where no public address is set."""
    wanted = {
        ChannelKind.EMAIL: settings.notify_email,
        ChannelKind.SLACK: settings.notify_slack,
        ChannelKind.WHATSAPP: settings.notify_whatsapp,
    }
    kinds = tuple(kind for kind, is_on in wanted.items() if is_on)
    return NotifierPolicy(settings.public_url or url, kinds)
