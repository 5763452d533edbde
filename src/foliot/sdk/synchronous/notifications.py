# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.channels`, `client.notification_rules`, `client.incidents`, `client.deliveries` and `client.webhooks`: who hears of what, what was
sent, and the addresses of jobs that other programs call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from foliot.sdk.request import ApiRequest, Ref, post
from foliot.sdk.response import raise_for_error, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes, each_of
from foliot.wire.notifications import (
    ChannelDeletion,
    ChannelIn,
    ChannelOut,
    IncidentOut,
    NoticeDeliveryOut,
    NotificationRuleIn,
    NotificationRuleOut,
    RuleDeletion,
)
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page
from foliot.wire.webhooks import IncomingWebhookIn, IncomingWebhookOut, WebhookDeletion


class ChannelWrites(Writes[Changed, Gone]):
    def create(self, channel: ChannelIn | Mapping[str, Any]) -> Changed:
        return self._change(post("/channels", body=channel))

    def replace(self, channel_id: Ref, channel: ChannelIn | Mapping[str, Any]) -> Changed:
        """Replace a channel and start it again, whatever stopped it."""
        request = ApiRequest("PUT", "/channels/{channel_id}", {"channel_id": channel_id}, body=channel)
        return self._change(request)

    def enable(self, channel_id: Ref) -> Changed:
        """Start a channel again, whatever stopped it."""
        return self._change(post("/channels/{channel_id}/enable", {"channel_id": channel_id}))

    def disable(self, channel_id: Ref) -> Changed:
        """Send nothing through it until it is enabled."""
        return self._change(post("/channels/{channel_id}/disable", {"channel_id": channel_id}))

    def delete(self, channel_id: Ref) -> Gone:
        """Delete a channel. Refused while rules send to it."""
        return self._remove(ApiRequest("DELETE", "/channels/{channel_id}", {"channel_id": channel_id}))

    def test(self, channel_id: Ref) -> NoticeDeliveryOut:
        """Send a test message. `client.deliveries.get` tells what the peer answered."""
        request = post("/channels/{channel_id}/test", {"channel_id": channel_id})
        return self._write(reader(NoticeDeliveryOut), request)


class ChannelsApi(ChannelWrites[ChannelOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(ChannelOut), raise_for_error)
        self.dry_run = ChannelWrites(http, reader(ChannelOut), reader(ChannelDeletion), dry_run=True)

    def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[ChannelOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.get(Page[ChannelOut], "/channels", query=query)

    def each(self) -> Iterator[ChannelOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, channel_id: Ref) -> ChannelOut:
        return self._http.get(ChannelOut, "/channels/{channel_id}", {"channel_id": channel_id})


class NotificationRuleWrites(Writes[Changed, Gone]):
    def create(self, rule: NotificationRuleIn | Mapping[str, Any]) -> Changed:
        return self._change(post("/notification-rules", body=rule))

    def replace(self, rule_id: Ref, rule: NotificationRuleIn | Mapping[str, Any]) -> Changed:
        return self._change(
            ApiRequest("PUT", "/notification-rules/{rule_id}", {"rule_id": rule_id}, body=rule)
        )

    def delete(self, rule_id: Ref) -> Gone:
        return self._remove(ApiRequest("DELETE", "/notification-rules/{rule_id}", {"rule_id": rule_id}))


class NotificationRulesApi(NotificationRuleWrites[NotificationRuleOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(NotificationRuleOut), raise_for_error)
        self.dry_run = NotificationRuleWrites(
            http, reader(NotificationRuleOut), reader(RuleDeletion), dry_run=True
        )

    def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[NotificationRuleOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.get(Page[NotificationRuleOut], "/notification-rules", query=query)

    def each(self) -> Iterator[NotificationRuleOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, rule_id: Ref) -> NotificationRuleOut:
        return self._http.get(NotificationRuleOut, "/notification-rules/{rule_id}", {"rule_id": rule_id})


class IncidentWrites(Writes[Changed, Gone]):
    def acknowledge(self, incident_id: Ref) -> Changed:
        """Stop its reminders: a person works on it. Its recovery is still sent."""
        return self._change(post("/incidents/{incident_id}/acknowledge", {"incident_id": incident_id}))

    def mute(self, incident_id: Ref) -> Changed:
        """Send nothing more about it, not even its recovery."""
        return self._change(post("/incidents/{incident_id}/mute", {"incident_id": incident_id}))

    def unmute(self, incident_id: Ref) -> Changed:
        return self._change(post("/incidents/{incident_id}/unmute", {"incident_id": incident_id}))

    def snooze(self, incident_id: Ref, until: datetime) -> Changed:
        """Send nothing about it until then; then remind."""
        request = post("/incidents/{incident_id}/snooze", {"incident_id": incident_id}, body={"until": until})
        return self._change(request)

    def close(self, incident_id: Ref) -> Changed:
        """Close it without a success."""
        return self._change(post("/incidents/{incident_id}/close", {"incident_id": incident_id}))

    def set_note(self, incident_id: Ref, note: str) -> Changed:
        """Replace its note; an empty one removes it."""
        request = ApiRequest(
            "PUT", "/incidents/{incident_id}/note", {"incident_id": incident_id}, body={"note": note}
        )
        return self._change(request)


class IncidentsApi(IncidentWrites[IncidentOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(IncidentOut), raise_for_error)
        self.dry_run = IncidentWrites(http, reader(IncidentOut), reader(IncidentOut), dry_run=True)

    def list(
        self,
        *,
        state: str | None = None,
        job_id: Ref | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[IncidentOut]:
        """Return one page, newest first. `state` is open or closed."""
        query = {"state": state, "job_id": job_id, "limit": limit, "cursor": cursor}
        return self._http.get(Page[IncidentOut], "/incidents", query=query)

    def each(self, *, state: str | None = None) -> Iterator[IncidentOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(state=state, limit=LONGEST_PAGE, cursor=cursor))

    def get(self, incident_id: Ref) -> IncidentOut:
        return self._http.get(IncidentOut, "/incidents/{incident_id}", {"incident_id": incident_id})


class DeliveryWrites(Writes[Changed, Gone]):
    def replay(self, delivery_id: Ref) -> Changed:
        """Send an ended delivery again, under the same id."""
        return self._change(post("/deliveries/{delivery_id}/replay", {"delivery_id": delivery_id}))


class DeliveriesApi(DeliveryWrites[NoticeDeliveryOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(NoticeDeliveryOut), raise_for_error)
        self.dry_run = DeliveryWrites(
            http, reader(NoticeDeliveryOut), reader(NoticeDeliveryOut), dry_run=True
        )

    def list(
        self,
        *,
        state: str | None = None,
        channel_id: Ref | None = None,
        incident_id: Ref | None = None,
        job_id: Ref | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[NoticeDeliveryOut]:
        """Return one page, newest first."""
        query = {
            "state": state,
            "channel_id": channel_id,
            "incident_id": incident_id,
            "job_id": job_id,
            "limit": limit,
            "cursor": cursor,
        }
        return self._http.get(Page[NoticeDeliveryOut], "/deliveries", query=query)

    def get(self, delivery_id: Ref) -> NoticeDeliveryOut:
        return self._http.get(NoticeDeliveryOut, "/deliveries/{delivery_id}", {"delivery_id": delivery_id})


class WebhookWrites(Writes[Changed, Gone]):
    def create(self, webhook: IncomingWebhookIn | Mapping[str, Any]) -> Changed:
        """Give a job an address that other programs call."""
        return self._change(post("/webhooks", body=webhook))

    def replace(self, webhook_id: Ref, webhook: IncomingWebhookIn | Mapping[str, Any]) -> Changed:
        """Change its name, its secrets and whether it is enabled."""
        request = ApiRequest("PUT", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, body=webhook)
        return self._change(request)

    def rotate(self, webhook_id: Ref) -> Changed:
        """Give it another address. The old one is unknown from then on."""
        return self._change(post("/webhooks/{webhook_id}/rotate", {"webhook_id": webhook_id}))

    def delete(self, webhook_id: Ref) -> Gone:
        return self._remove(ApiRequest("DELETE", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}))


class WebhooksApi(WebhookWrites[IncomingWebhookOut, None]):
    """Incoming webhooks. Outgoing ones are channels of the kind `webhook`."""

    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(IncomingWebhookOut), raise_for_error)
        self.dry_run = WebhookWrites(http, reader(IncomingWebhookOut), reader(WebhookDeletion), dry_run=True)

    def list(
        self, *, job_id: Ref | None = None, limit: int = PAGE, cursor: str | None = None
    ) -> Page[IncomingWebhookOut]:
        """Return one page, ordered by name."""
        query = {"job_id": job_id, "limit": limit, "cursor": cursor}
        return self._http.get(Page[IncomingWebhookOut], "/webhooks", query=query)

    def each(self) -> Iterator[IncomingWebhookOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, webhook_id: Ref) -> IncomingWebhookOut:
        return self._http.get(IncomingWebhookOut, "/webhooks/{webhook_id}", {"webhook_id": webhook_id})
