"""Streams go on where they broke off."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest

from foliot.sdk import Denied, Unreadable
from foliot.sdk.asynchronous.http import AsyncTransport
from foliot.sdk.asynchronous.http import events_of as async_events_of
from foliot.sdk.connection import Connection
from foliot.sdk.request import ApiRequest
from foliot.sdk.synchronous.http import Transport, events_of
from tests.sdk.conftest import ScriptedServer
from tests.sdk.test_retries import BUSY

SSE = {"Content-Type": "text/event-stream"}
FIRST = b': hello\n\nid: 7\nevent: run.settled\ndata: {"text": "a\xe2\x80\xa8b"}\n\nid: 8\nda'  # cut short
SECOND = b"retry: 5\n\nid: 8\nevent: run.settled\ndata: 2\n\n"


def test_a_broken_stream_is_resumed_after_the_last_event_that_came(scripted_server: ScriptedServer) -> None:
    scripted_server.answers = [(200, SSE, FIRST), (503, {}, BUSY), None, (200, SSE, SECOND)]
    http = Transport(
        Connection(scripted_server.url, "key", is_local=True), workspace=None, timeout=5, retries=0
    )
    first, second = islice(events_of(http, ApiRequest("GET", "/events"), "6"), 2)
    assert (first.id, first.event, first.json()) == ("7", "run.settled", {"text": "a\u2028b"})
    assert (second.id, second.json()) == ("8", 2)
    assert [got.headers["Last-Event-ID"] for got in scripted_server.got] == ["6", "7", "7", "7"]
    http.close()


async def test_the_asynchronous_stream_does_the_same(scripted_server: ScriptedServer) -> None:
    scripted_server.answers = [(200, SSE, FIRST), None, (200, SSE, SECOND)]
    http = AsyncTransport(
        Connection(scripted_server.url, "key", is_local=True), workspace=None, timeout=5, retries=0
    )
    seen = []
    stream = async_events_of(http, ApiRequest("GET", "/events"))
    async with asyncio.timeout(30):
        async for event in stream:
            seen.append(event.id)
            if len(seen) == 2:
                break
    assert seen == ["7", "8"]
    await http.close()


def test_a_refused_stream_is_not_asked_for_again(scripted_server: ScriptedServer) -> None:
    scripted_server.answers = [(403, {}, {**BUSY, "status": 403, "code": "denied"}), (200, {}, b"{}")]
    http = Transport(
        Connection(scripted_server.url, "key", is_local=True), workspace=None, timeout=5, retries=0
    )
    with pytest.raises(Denied):
        next(events_of(http, ApiRequest("GET", "/events")))
    with pytest.raises(Unreadable):
        next(events_of(http, ApiRequest("GET", "/events")))
    assert len(scripted_server.got) == 2
    http.close()
