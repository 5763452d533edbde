"""`client.channels`, `client.notification_rules`, `client.incidents`, `client.deliveries` and `client.webhooks`: who hears of what, what was
sent, and the addresses of jobs that other programs call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone, each_of
from foliot.sdk.request import ApiRequest, Ref, post
from foliot.sdk.response import raise_for_error, reader
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


class AsyncChannelWrites(AsyncWrites[Changed, Gone]):
    async def create(self, channel: ChannelIn | Mapping[str, Any]) -> Changed:
        return await self._change(post("/channels", body=channel))

    async def replace(self, channel_id: Ref, channel: ChannelIn | Mapping[str, Any]) -> Changed:
        """Replace a channel and start it again, whatever stopped it."""
        request = ApiRequest("PUT", "/channels/{channel_id}", {"channel_id": channel_id}, body=channel)
        return await self._change(request)

    async def enable(self, channel_id: Ref) -> Changed:
        """Start a channel again, whatever stopped it."""
        return await self._change(post("/channels/{channel_id}/enable", {"channel_id": channel_id}))

    async def disable(self, channel_id: Ref) -> Changed:
        """Send nothing through it until it is enabled."""
        return await self._change(post("/channels/{channel_id}/disable", {"channel_id": channel_id}))

    async def delete(self, channel_id: Ref) -> Gone:
        """Delete a channel. Refused while rules send to it."""
        return await self._remove(ApiRequest("DELETE", "/channels/{channel_id}", {"channel_id": channel_id}))

    async def test(self, channel_id: Ref) -> NoticeDeliveryOut:
        """Send a test message. `client.deliveries.get` tells what the peer answered."""
        request = post("/channels/{channel_id}/test", {"channel_id": channel_id})
        return await self._write(reader(NoticeDeliveryOut), request)


class AsyncChannelsApi(AsyncChannelWrites[ChannelOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(ChannelOut), raise_for_error)
        self.dry_run = AsyncChannelWrites(http, reader(ChannelOut), reader(ChannelDeletion), dry_run=True)

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[ChannelOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.get(Page[ChannelOut], "/channels", query=query)

    def each(self) -> AsyncIterator[ChannelOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, channel_id: Ref) -> ChannelOut:
        return await self._http.get(ChannelOut, "/channels/{channel_id}", {"channel_id": channel_id})


class AsyncNotificationRuleWrites(AsyncWrites[Changed, Gone]):
    async def create(self, rule: NotificationRuleIn | Mapping[str, Any]) -> Changed:
        return await self._change(post("/notification-rules", body=rule))

    async def replace(self, rule_id: Ref, rule: NotificationRuleIn | Mapping[str, Any]) -> Changed:
        return await self._change(
            ApiRequest("PUT", "/notification-rules/{rule_id}", {"rule_id": rule_id}, body=rule)
        )

    async def delete(self, rule_id: Ref) -> Gone:
        return await self._remove(ApiRequest("DELETE", "/notification-rules/{rule_id}", {"rule_id": rule_id}))


class AsyncNotificationRulesApi(AsyncNotificationRuleWrites[NotificationRuleOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(NotificationRuleOut), raise_for_error)
        self.dry_run = AsyncNotificationRuleWrites(
            http, reader(NotificationRuleOut), reader(RuleDeletion), dry_run=True
        )

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[NotificationRuleOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.get(Page[NotificationRuleOut], "/notification-rules", query=query)

    def each(self) -> AsyncIterator[NotificationRuleOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, rule_id: Ref) -> NotificationRuleOut:
        return await self._http.get(
            NotificationRuleOut, "/notification-rules/{rule_id}", {"rule_id": rule_id}
        )


class AsyncIncidentWrites(AsyncWrites[Changed, Gone]):
    async def acknowledge(self, incident_id: Ref) -> Changed:
        """Stop its reminders: a person works on it. Its recovery is still sent."""
        return await self._change(post("/incidents/{incident_id}/acknowledge", {"incident_id": incident_id}))

    async def mute(self, incident_id: Ref) -> Changed:
        """Send nothing more about it, not even its recovery."""
        return await self._change(post("/incidents/{incident_id}/mute", {"incident_id": incident_id}))

    async def unmute(self, incident_id: Ref) -> Changed:
        return await self._change(post("/incidents/{incident_id}/unmute", {"incident_id": incident_id}))

    async def snooze(self, incident_id: Ref, until: datetime) -> Changed:
        """Send nothing about it until then; then remind."""
        request = post("/incidents/{incident_id}/snooze", {"incident_id": incident_id}, body={"until": until})
        return await self._change(request)

    async def close(self, incident_id: Ref) -> Changed:
        """Close it without a success."""
        return await self._change(post("/incidents/{incident_id}/close", {"incident_id": incident_id}))

    async def set_note(self, incident_id: Ref, note: str) -> Changed:
        """Replace its note; an empty one removes it."""
        request = ApiRequest(
            "PUT", "/incidents/{incident_id}/note", {"incident_id": incident_id}, body={"note": note}
        )
        return await self._change(request)


class AsyncIncidentsApi(AsyncIncidentWrites[IncidentOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(IncidentOut), raise_for_error)
        self.dry_run = AsyncIncidentWrites(http, reader(IncidentOut), reader(IncidentOut), dry_run=True)

    async def list(
        self,
        *,
        state: str | None = None,
        job_id: Ref | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[IncidentOut]:
        """Return one page, newest first. `state` is open or closed."""
        query = {"state": state, "job_id": job_id, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[IncidentOut], "/incidents", query=query)

    def each(self, *, state: str | None = None) -> AsyncIterator[IncidentOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(state=state, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, incident_id: Ref) -> IncidentOut:
        return await self._http.get(IncidentOut, "/incidents/{incident_id}", {"incident_id": incident_id})


class AsyncDeliveryWrites(AsyncWrites[Changed, Gone]):
    async def replay(self, delivery_id: Ref) -> Changed:
        """Send an ended delivery again, under the same id."""
        return await self._change(post("/deliveries/{delivery_id}/replay", {"delivery_id": delivery_id}))


class AsyncDeliveriesApi(AsyncDeliveryWrites[NoticeDeliveryOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(NoticeDeliveryOut), raise_for_error)
        self.dry_run = AsyncDeliveryWrites(
            http, reader(NoticeDeliveryOut), reader(NoticeDeliveryOut), dry_run=True
        )

    async def list(
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
        return await self._http.get(Page[NoticeDeliveryOut], "/deliveries", query=query)

    async def get(self, delivery_id: Ref) -> NoticeDeliveryOut:
        return await self._http.get(
            NoticeDeliveryOut, "/deliveries/{delivery_id}", {"delivery_id": delivery_id}
        )


class AsyncWebhookWrites(AsyncWrites[Changed, Gone]):
    async def create(self, webhook: IncomingWebhookIn | Mapping[str, Any]) -> Changed:
        """Give a job an address that other programs call."""
        return await self._change(post("/webhooks", body=webhook))

    async def replace(self, webhook_id: Ref, webhook: IncomingWebhookIn | Mapping[str, Any]) -> Changed:
        """Change its name, its secrets and whether it is enabled."""
        request = ApiRequest("PUT", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, body=webhook)
        return await self._change(request)

    async def rotate(self, webhook_id: Ref) -> Changed:
        """Give it another address. The old one is unknown from then on."""
        return await self._change(post("/webhooks/{webhook_id}/rotate", {"webhook_id": webhook_id}))

    async def delete(self, webhook_id: Ref) -> Gone:
        return await self._remove(ApiRequest("DELETE", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}))


class AsyncWebhooksApi(AsyncWebhookWrites[IncomingWebhookOut, None]):
    """Incoming webhooks. Outgoing ones are channels of the kind `webhook`."""

    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(IncomingWebhookOut), raise_for_error)
        self.dry_run = AsyncWebhookWrites(
            http, reader(IncomingWebhookOut), reader(WebhookDeletion), dry_run=True
        )

    async def list(
        self, *, job_id: Ref | None = None, limit: int = PAGE, cursor: str | None = None
    ) -> Page[IncomingWebhookOut]:
        """Return one page, ordered by name."""
        query = {"job_id": job_id, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[IncomingWebhookOut], "/webhooks", query=query)

    def each(self) -> AsyncIterator[IncomingWebhookOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, webhook_id: Ref) -> IncomingWebhookOut:
        return await self._http.get(IncomingWebhookOut, "/webhooks/{webhook_id}", {"webhook_id": webhook_id})
