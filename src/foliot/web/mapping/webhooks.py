"""Incoming webhooks: domain <-> JSON."""

from __future__ import annotations

from foliot.domain.ids import JobId
from foliot.domain.webhooks import IncomingWebhook, WebhookDefinition, WebhookKind
from foliot.wire import webhooks as wire
from foliot.wire.rooms import SecretNamed


def webhook_from(given: wire.IncomingWebhookIn) -> WebhookDefinition:
    return WebhookDefinition(
        given.name.strip(),
        WebhookKind(given.kind),
        JobId(given.job_id),
        None if given.secret is None else given.secret.secret,
        None if given.old_secret is None else given.old_secret.secret,
        given.enabled,
    )


def webhook_out(webhook: IncomingWebhook, base_url: str | None) -> wire.IncomingWebhookOut:
    """`base_url` is None where the caller may not see the address."""
    definition = webhook.definition
    return wire.IncomingWebhookOut.from_value(
        webhook,
        name=definition.name,
        kind=definition.kind.value,
        job_id=definition.job_id,
        secret=_named(definition.secret),
        old_secret=_named(definition.old_secret),
        enabled=definition.enabled,
        url=None if base_url is None else f"{base_url.rstrip('/')}/hooks/{webhook.token}",
        last_call_at=webhook.called_at,
        last_refusal_at=webhook.refused_at,
        last_refusal=webhook.refusal,
    )


def _named(secret: str | None) -> SecretNamed | None:
    return None if secret is None else SecretNamed(secret=secret)
