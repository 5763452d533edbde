"""The channels of a node, and what its settings decide about notifications."""

from __future__ import annotations

from foliot.channels.apprise import AppriseChannel
from foliot.channels.email import EmailChannel, read_mail_url
from foliot.channels.notice_webhook import NoticeWebhookChannel
from foliot.channels.parcel_sender import ParcelSender
from foliot.channels.room import RoomChannel
from foliot.channels.slack import SlackChannel
from foliot.channels.webhook import WebhookChannel
from foliot.channels.whatsapp import WhatsappChannel
from foliot.domain.notifications.channel import ChannelKind
from foliot.egress.client import Egress
from foliot.services.notifications.dispatch import NotifierPolicy
from foliot.settings import Settings
from foliot.storage.tx import Database


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


def notifier_policy_of(settings: Settings, url: str | None) -> NotifierPolicy:
    """`url` is the address that the node listens on, for links where no public address is set."""
    wanted = {
        ChannelKind.EMAIL: settings.notify_email,
        ChannelKind.SLACK: settings.notify_slack,
        ChannelKind.WHATSAPP: settings.notify_whatsapp,
    }
    kinds = tuple(kind for kind, is_on in wanted.items() if is_on)
    return NotifierPolicy(settings.public_url or url, kinds)
