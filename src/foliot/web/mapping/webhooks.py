"""Webhooks of rooms between JSON and values: an address is judged when it is written, as far as that can be done then."""

from __future__ import annotations

from collections.abc import Callable

from foliot.domain.addresses import networks
from foliot.domain.errors import Invalid
from foliot.domain.rooms import Hook, Webhook
from foliot.egress.client import refusal
from foliot.egress.url import InvalidTarget, read_target
from foliot.wire.rooms import SecretNamed, WebhookChange, WebhookOut

URL = "/webhook/url"


def hook_of(url: str, secret: str | None, egress_allow: tuple[str, ...]) -> Hook:
    """Where a name leads is known only when it is called; an address shows it now."""
    try:
        target = read_target(url)
    except InvalidTarget as error:
        raise Invalid(error.message, pointer=URL, hint=error.hint) from None
    if target.address is not None:
        sentence = refusal(target.host, [target.address], networks(egress_allow))
        if sentence is not None:
            what, _, hint = sentence.partition(". ")
            raise Invalid(f"{what}.", pointer=URL, hint=hint)
    return Hook(url, f"{target.host}:{target.port}", secret)


def changed_hook(
    change: WebhookChange | None, egress_allow: tuple[str, ...]
) -> Callable[[Hook | None], Hook] | None:
    """What becomes of the hook that a room has; None where it is taken away."""
    if change is None:
        return None
    given = change.model_fields_set

    def changed(before: Hook | None) -> Hook:
        url = change.url if "url" in given else None if before is None else before.url
        if url is None:
            raise Invalid(
                "A webhook needs an address.",
                pointer=URL,
                hint="To remove the webhook, send null in its place.",
            )
        secret = None if before is None else before.secret
        if "secret" in given:
            secret = None if change.secret is None else change.secret.secret
        return hook_of(url, secret, egress_allow)

    return changed


def webhook_out(webhook: Webhook | None) -> WebhookOut | None:
    if webhook is None:
        return None
    secret = webhook.hook.secret
    return WebhookOut(
        url=webhook.hook.url,
        secret=None if secret is None else SecretNamed(secret=secret),
        delivered_seq=webhook.delivered_seq,
        delivered_at=webhook.delivered_at,
        failing_since=webhook.failing_since,
        last_error=webhook.error,
        stopped_at=webhook.stopped_at,
    )
