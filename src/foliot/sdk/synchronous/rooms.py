# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.rooms`: chat rooms, where message jobs write and people and agents answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from foliot.sdk.request import ApiRequest, Ref, post, without_none
from foliot.sdk.response import parse_json, raise_for_error, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes, each_of, events_of
from foliot.wire.rooms import DeliveryOut, MessageOut, MessagesOut, RedeliveredOut, RoomOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class RoomWrites(Writes[Changed, Gone]):
    def create(
        self,
        name: str,
        *,
        key: str | None = None,
        agents: Sequence[Ref] = (),
        webhook: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Changed:
        """Create a room. `agents` may read and write in it; an agent that creates one may, too.

        `webhook` is `{"url": …, "secret": {"secret": name}}`: its messages are sent there, signed if there is a secret.
        """
        body = without_none(
            name=name, key=key, agents=[str(each) for each in agents] or None, webhook=webhook
        )
        return self._change(post("/rooms", body=body, key=idempotency_key))

    def change(
        self, room_id: Ref, *, name: str | None = None, agents: Sequence[Ref] | None = None
    ) -> Changed:
        """Change the name, or replace the agents."""
        body = without_none(name=name, agents=None if agents is None else [str(each) for each in agents])
        return self._change(ApiRequest("PATCH", "/rooms/{room_id}", {"room_id": room_id}, body=body))

    def set_webhook(self, room_id: Ref, url: str, *, secret: str | None = None) -> Changed:
        """Send new messages to a URL, signed with the named secret. A stopped webhook starts again."""
        webhook = {"url": url, "secret": None if secret is None else {"secret": secret}}
        request = ApiRequest("PATCH", "/rooms/{room_id}", {"room_id": room_id}, body={"webhook": webhook})
        return self._change(request)

    def remove_webhook(self, room_id: Ref) -> Changed:
        """Remove the webhook. Unsent messages are dropped."""
        request = ApiRequest("PATCH", "/rooms/{room_id}", {"room_id": room_id}, body={"webhook": None})
        return self._change(request)

    def redeliver(
        self, room_id: Ref, deliveries: Sequence[Ref] | None = None, *, idempotency_key: str | None = None
    ) -> RedeliveredOut:
        """Send failed deliveries again: these, or the oldest thousand."""
        body = without_none(deliveries=None if deliveries is None else [str(each) for each in deliveries])
        request = post("/rooms/{room_id}/redeliver", {"room_id": room_id}, body=body, key=idempotency_key)
        return self._write(reader(RedeliveredOut), request)

    def delete(self, room_id: Ref) -> Gone:
        """Delete a room and all its messages."""
        return self._remove(ApiRequest("DELETE", "/rooms/{room_id}", {"room_id": room_id}))

    def post(
        self,
        room_id: Ref,
        text: str,
        *,
        kind: Literal["message", "system_event"] = "message",
        idempotency_key: str | None = None,
    ) -> MessageOut:
        """Send a message to a room."""
        body = without_none(text=text, kind=kind)
        request = post("/rooms/{room_id}/messages", {"room_id": room_id}, body=body, key=idempotency_key)
        return self._write(reader(MessageOut), request)


class RoomsApi(RoomWrites[RoomOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(RoomOut), raise_for_error)
        self.dry_run = RoomWrites(http, reader(RoomOut), reader(RoomOut), dry_run=True)

    def list(self, *, key: str | None = None, limit: int = PAGE, cursor: str | None = None) -> Page[RoomOut]:
        """Return one page, newest first. An agent sees only its own rooms."""
        query = {"key": key, "limit": limit, "cursor": cursor}
        return self._http.get(Page[RoomOut], "/rooms", query=query)

    def each(self) -> Iterator[RoomOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, room_id: Ref) -> RoomOut:
        return self._http.get(RoomOut, "/rooms/{room_id}", {"room_id": room_id})

    def deliveries(
        self,
        room_id: Ref,
        *,
        state: Literal["waiting", "delivered", "dead"] | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[DeliveryOut]:
        """Return one page of its webhook's deliveries, newest message first."""
        query = {"state": state, "limit": limit, "cursor": cursor}
        return self._http.get(Page[DeliveryOut], "/rooms/{room_id}/deliveries", {"room_id": room_id}, query)

    def messages(self, room_id: Ref, *, after: int = 0, limit: int = PAGE, wait: int = 0) -> MessagesOut:
        """Return one page of messages after number `after`, oldest first; wait up to `wait` seconds for the first."""
        query = {"follow": False, "wait": wait, "limit": limit, "cursor": str(after)}
        return self._http.get(MessagesOut, "/rooms/{room_id}/messages", {"room_id": room_id}, query)

    def follow(self, room_id: Ref, *, after: int = 0) -> Iterator[MessageOut]:
        """Yield the messages after number `after`, then new ones, without end."""
        query = {"follow": True, "limit": None, "wait": None, "cursor": str(after)}
        request = ApiRequest("GET", "/rooms/{room_id}/messages", {"room_id": room_id}, query)
        for event in events_of(self._http, request):
            if event.event == "message":
                yield parse_json(MessageOut, event.data, self._http.url)
