# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.rooms`: where message jobs leave word, and people and agents answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.response import read_text
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.sdk.synchronous.sse import events_of
from foliot.wire.rooms import DeliveryOut, MessageOut, MessagesOut, RedeliveredOut, RoomOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class Rooms:
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, *, key: str | None = None, limit: int = PAGE, cursor: str | None = None) -> Page[RoomOut]:
        """One page, newest first; to an agent, those it was given."""
        query = {"key": key, "limit": limit, "cursor": cursor}
        return self._http.ask(Page[RoomOut], Ask("GET", "/rooms", query=query))

    def each(self) -> Iterator[RoomOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, room_id: Ref) -> RoomOut:
        return self._http.ask(RoomOut, Ask("GET", "/rooms/{room_id}", {"room_id": room_id}))

    def create(
        self,
        name: str,
        *,
        key: str | None = None,
        agents: Sequence[Ref] = (),
        webhook: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> RoomOut:
        """`agents` may see it and write in it. One that an agent makes is its own.

        `webhook` is `{"url": …, "secret": {"secret": name}}`: its messages are sent there, signed where a secret is named.
        """
        body = given(name=name, key=key, agents=[str(each) for each in agents] or None, webhook=webhook)
        return self._http.ask(RoomOut, post("/rooms", body=body, key=idempotency_key))

    def change(
        self, room_id: Ref, *, name: str | None = None, agents: Sequence[Ref] | None = None
    ) -> RoomOut:
        """`agents` in place of those it has."""
        body = given(name=name, agents=None if agents is None else [str(each) for each in agents])
        ask = Ask("PATCH", "/rooms/{room_id}", {"room_id": room_id}, body=body)
        return self._http.ask(RoomOut, ask)

    def set_webhook(self, room_id: Ref, url: str, *, secret: str | None = None) -> RoomOut:
        """Send its messages there from now on, signed with the secret of that name. What stopped or failed begins anew."""
        webhook = {"url": url, "secret": None if secret is None else {"secret": secret}}
        ask = Ask("PATCH", "/rooms/{room_id}", {"room_id": room_id}, body={"webhook": webhook})
        return self._http.ask(RoomOut, ask)

    def remove_webhook(self, room_id: Ref) -> RoomOut:
        """What was not sent yet is given up."""
        ask = Ask("PATCH", "/rooms/{room_id}", {"room_id": room_id}, body={"webhook": None})
        return self._http.ask(RoomOut, ask)

    def deliveries(
        self,
        room_id: Ref,
        *,
        state: Literal["waiting", "delivered", "dead"] | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[DeliveryOut]:
        """One page of what its webhook sends, the newest messages first."""
        query = {"state": state, "limit": limit, "cursor": cursor}
        ask = Ask("GET", "/rooms/{room_id}/deliveries", {"room_id": room_id}, query)
        return self._http.ask(Page[DeliveryOut], ask)

    def redeliver(
        self, room_id: Ref, deliveries: Sequence[Ref] | None = None, *, idempotency_key: str | None = None
    ) -> RedeliveredOut:
        """Send again what was given up: these, or the oldest thousand."""
        body = given(deliveries=None if deliveries is None else [str(each) for each in deliveries])
        ask = post("/rooms/{room_id}/redeliver", {"room_id": room_id}, body=body, key=idempotency_key)
        return self._http.ask(RedeliveredOut, ask)

    def delete(self, room_id: Ref) -> None:
        """With everything that was written in it."""
        self._http.tell(Ask("DELETE", "/rooms/{room_id}", {"room_id": room_id}))

    def post(
        self,
        room_id: Ref,
        text: str,
        *,
        kind: Literal["message", "system_event"] = "message",
        idempotency_key: str | None = None,
    ) -> MessageOut:
        """Write in it."""
        body = given(text=text, kind=kind)
        ask = post("/rooms/{room_id}/messages", {"room_id": room_id}, body=body, key=idempotency_key)
        return self._http.ask(MessageOut, ask)

    def messages(self, room_id: Ref, *, after: int = 0, limit: int = PAGE, wait: int = 0) -> MessagesOut:
        """One page, oldest first, of those behind number `after`; where there are none, after at most `wait` seconds."""
        query = {"follow": False, "wait": wait, "limit": limit, "cursor": str(after)}
        ask = Ask("GET", "/rooms/{room_id}/messages", {"room_id": room_id}, query)
        return self._http.ask(MessagesOut, ask)

    def follow(self, room_id: Ref, *, after: int = 0) -> Iterator[MessageOut]:
        """Those behind number `after`, and whatever comes, without end."""
        query = {"follow": True, "limit": None, "wait": None, "cursor": str(after)}
        ask = Ask("GET", "/rooms/{room_id}/messages", {"room_id": room_id}, query)
        for event in events_of(self._http, ask):
            if event.event == "message":
                yield read_text(MessageOut, event.data, self._http.url)
