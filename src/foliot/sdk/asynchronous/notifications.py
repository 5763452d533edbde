"""`client.channels`, `client.notification_rules`, `client.incidents` and `client.deliveries`: who hears of what, and what was sent."""

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

CHANNEL, RULE, INCIDENT = (
    "/channels/{channel_id}",
    "/notification-rules/{rule_id}",
    "/incidents/{incident_id}",
)


class AsyncChannelWrites(AsyncWrites[Changed, Gone]):
    async def create(self, channel: ChannelIn | Mapping[str, Any]) -> Changed:
        return await self._write(self._changed, post("/channels", body=channel))

    async def replace(self, channel_id: Ref, channel: ChannelIn | Mapping[str, Any]) -> Changed:
        """Replace a channel and start it again, whatever stopped it."""
        request = ApiRequest("PUT", CHANNEL, {"channel_id": channel_id}, body=channel)
        return await self._write(self._changed, request)

    async def enable(self, channel_id: Ref) -> Changed:
        """Start a channel again, whatever stopped it."""
        return await self._write(self._changed, post(f"{CHANNEL}/enable", {"channel_id": channel_id}))

    async def disable(self, channel_id: Ref) -> Changed:
        """Send nothing through it until it is enabled."""
        return await self._write(self._changed, post(f"{CHANNEL}/disable", {"channel_id": channel_id}))

    async def delete(self, channel_id: Ref) -> Gone:
        """Delete a channel. Refused while rules send to it."""
        return await self._write(self._gone, ApiRequest("DELETE", CHANNEL, {"channel_id": channel_id}))


class AsyncChannelsApi(AsyncChannelWrites[ChannelOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(ChannelOut), raise_for_error)
        self.dry_run = AsyncChannelWrites(http, reader(ChannelOut), reader(ChannelDeletion), dry_run=True)

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[ChannelOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.read(Page[ChannelOut], ApiRequest("GET", "/channels", query=query))

    def each(self) -> AsyncIterator[ChannelOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, channel_id: Ref) -> ChannelOut:
        return await self._http.read(ChannelOut, ApiRequest("GET", CHANNEL, {"channel_id": channel_id}))

    async def test(self, channel_id: Ref) -> NoticeDeliveryOut:
        """Send a test message. `client.deliveries.get` tells what the peer answered."""
        return await self._http.read(NoticeDeliveryOut, post(f"{CHANNEL}/test", {"channel_id": channel_id}))


class AsyncNotificationRuleWrites(AsyncWrites[Changed, Gone]):
    async def create(self, rule: NotificationRuleIn | Mapping[str, Any]) -> Changed:
        return await self._write(self._changed, post("/notification-rules", body=rule))

    async def replace(self, rule_id: Ref, rule: NotificationRuleIn | Mapping[str, Any]) -> Changed:
        return await self._write(self._changed, ApiRequest("PUT", RULE, {"rule_id": rule_id}, body=rule))

    async def delete(self, rule_id: Ref) -> Gone:
        return await self._write(self._gone, ApiRequest("DELETE", RULE, {"rule_id": rule_id}))


class AsyncNotificationRulesApi(AsyncNotificationRuleWrites[NotificationRuleOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(NotificationRuleOut), raise_for_error)
        self.dry_run = AsyncNotificationRuleWrites(
            http, reader(NotificationRuleOut), reader(RuleDeletion), dry_run=True
        )

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[NotificationRuleOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        request = ApiRequest("GET", "/notification-rules", query=query)
        return await self._http.read(Page[NotificationRuleOut], request)

    def each(self) -> AsyncIterator[NotificationRuleOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, rule_id: Ref) -> NotificationRuleOut:
        return await self._http.read(NotificationRuleOut, ApiRequest("GET", RULE, {"rule_id": rule_id}))


class AsyncIncidentWrites(AsyncWrites[Changed, Gone]):
    async def acknowledge(self, incident_id: Ref) -> Changed:
        """Stop its reminders: a person works on it. Its recovery is still sent."""
        return await self._post("acknowledge", incident_id)

    async def mute(self, incident_id: Ref) -> Changed:
        """Send nothing more about it, not even its recovery."""
        return await self._post("mute", incident_id)

    async def unmute(self, incident_id: Ref) -> Changed:
        return await self._post("unmute", incident_id)

    async def snooze(self, incident_id: Ref, until: datetime) -> Changed:
        """Send nothing about it until then; then remind."""
        return await self._post("snooze", incident_id, {"until": until})

    async def close(self, incident_id: Ref) -> Changed:
        """Close it without a success."""
        return await self._post("close", incident_id)

    async def set_note(self, incident_id: Ref, note: str) -> Changed:
        """Replace its note; an empty one removes it."""
        request = ApiRequest("PUT", f"{INCIDENT}/note", {"incident_id": incident_id}, body={"note": note})
        return await self._write(self._changed, request)

    async def _post(self, verb: str, incident_id: Ref, body: Mapping[str, Any] | None = None) -> Changed:
        request = post(f"{INCIDENT}/{verb}", {"incident_id": incident_id}, body=body)
        return await self._write(self._changed, request)


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
        return await self._http.read(Page[IncidentOut], ApiRequest("GET", "/incidents", query=query))

    def each(self, *, state: str | None = None) -> AsyncIterator[IncidentOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(state=state, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, incident_id: Ref) -> IncidentOut:
        return await self._http.read(IncidentOut, ApiRequest("GET", INCIDENT, {"incident_id": incident_id}))


class AsyncDeliveryWrites(AsyncWrites[Changed, Gone]):
    async def replay(self, delivery_id: Ref) -> Changed:
        """Send an ended delivery again, under the same id."""
        request = post("/deliveries/{delivery_id}/replay", {"delivery_id": delivery_id})
        return await self._write(self._changed, request)


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
        return await self._http.read(Page[NoticeDeliveryOut], ApiRequest("GET", "/deliveries", query=query))

    async def get(self, delivery_id: Ref) -> NoticeDeliveryOut:
        request = ApiRequest("GET", "/deliveries/{delivery_id}", {"delivery_id": delivery_id})
        return await self._http.read(NoticeDeliveryOut, request)
