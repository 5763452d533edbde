# Made from sdk/asynchronous by ./dev format; edit it there.
"""Server-sent events, resumed where they broke off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx2

from foliot.sdk.errors import unreachable, unreadable
from foliot.sdk.request import Ask, wait_before_resuming
from foliot.sdk.response import check
from foliot.sdk.sleep import nap
from foliot.sdk.synchronous.http import Http


def events_of(http: Http, ask: Ask, last_event_id: str | None = None) -> Iterator[httpx2.ServerSentEvent]:
    """Without end: where the connection breaks or the server restarts, it goes on after the last event that came.

    Raises what the server refuses, and Unreachable when nobody answers for about a minute.
    """
    tries = 0
    while True:
        came: httpx2.Response | httpx2.TransportError | None = None
        try:
            answer = http.open(_resumed(ask, last_event_id))
            try:
                if answer.is_success:
                    for event in httpx2.EventSource(answer):
                        tries = 0
                        last_event_id = event.id or last_event_id
                        if event.data:
                            yield event
                else:
                    answer.read()
                    came = answer
            finally:
                answer.close()
        except httpx2.SSEError as error:
            raise unreadable(http.url, str(error)) from None
        except httpx2.TransportError as error:
            came = error
        tries += 1
        wait = wait_before_resuming(tries, came)
        if wait is None:
            if isinstance(came, httpx2.Response):
                check(came)
            broken = came if isinstance(came, httpx2.TransportError) else httpx2.ReadError("the stream ended")
            raise unreachable(http.url, broken) from broken
        nap(wait)


def _resumed(ask: Ask, last_event_id: str | None) -> Ask:
    headers = {**ask.headers, "Accept": "text/event-stream"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    return replace(ask, headers=headers)
