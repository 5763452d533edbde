"""Rooms, their webhooks and deliveries, between the wire and the domain."""

from __future__ import annotations

from collections.abc import Callable

from foliot.domain.addresses import networks
from foliot.domain.delivery import Delivery
from foliot.domain.errors import Invalid
from foliot.domain.rooms import Hook, Room, Webhook
from foliot.egress.client import refusal
from foliot.egress.url import InvalidTarget, read_target
from foliot.services.identity.authentication import Caller
from foliot.wire.rooms import DeliveryOut, RoomOut, SecretNamed, WebhookChange, WebhookOut

URL = "/webhook/url"


def hook_from(url: str, secret: str | None, egress_allow: tuple[str, ...]) -> Hook:
    """Read a webhook and check its address. A host name is checked again at each call, when it is resolved."""
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


def hook_change_from(
    change: WebhookChange | None, egress_allow: tuple[str, ...]
) -> Callable[[Hook | None], Hook] | None:
    """Return a function that changes the hook of a room; None removes it."""
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
        return hook_from(url, secret, egress_allow)

    return changed


def webhook_out(webhook: Webhook | None) -> WebhookOut | None:
    if webhook is None:
        return None
    secret = webhook.hook.secret
    return WebhookOut.from_value(
        webhook,
        url=webhook.hook.url,
        secret=None if secret is None else SecretNamed(secret=secret),
        last_error=webhook.error,
    )


def room_out(room: Room, caller: Caller) -> RoomOut:
    """An agent does not see the other agents, nor the webhook."""
    agent = caller.visible_owner
    return RoomOut.from_value(
        room,
        agents=[each for each in room.agents if agent in (None, each)],
        webhook=None if agent else webhook_out(room.webhook),
    )


def delivery_out(delivery: Delivery) -> DeliveryOut:
    return DeliveryOut.from_value(
        delivery,
        seq=delivery.position,
        state=delivery.state.value,
        next_attempt_at=delivery.due_at,
        last_status=delivery.status,
        last_error=delivery.error,
    )
