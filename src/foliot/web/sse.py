"""Server-sent events: responses that continue until the reader disconnects, its key becomes invalid, or the server stops.

The server buffers nothing for a reader: it reads further events from the database when the connection can take them.

Why: docs/decisions/505-events.md
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from foliot.clock import monotonic
from foliot.domain.access import Permission
from foliot.domain.errors import FoliotError, Invalid, Unavailable
from foliot.services.identity.authentication import Authenticator, Caller
from foliot.web.admission import release_place
from foliot.web.work_signal import WorkSignal
from foliot.wire.shape import Shape

log = logging.getLogger(__name__)

NAP, LONGEST_NAP = 0.5, 4.0  # seconds between queries
HEARTBEAT = 15.0
CHECK_EVERY = 1.4  # seconds between checks of the key; with the authentication cache, less than five in all
SLOWEST = 30.0  # seconds that a reader may leave its connection full
MOST, MOST_OF_A_WORKSPACE = 1_000, 400  # open at once in one process


class EventStream(StreamingResponse):
    """The answer to one reader. It counts as open from here on until the reader is gone."""

    media_type = "text/event-stream"

    def __init__(self, connection: StreamConnection, frames: AsyncGenerator[str, None]) -> None:
        super().__init__(
            connection.carry(frames), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        connection.open()
        self._connection = connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope.get("foliot.head"):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
                return
            await super().__call__(scope, receive, send)
        finally:
            self._connection.close()

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for frame in self.body_iterator:
                async with asyncio.timeout(SLOWEST):
                    await send({"type": "http.response.body", "body": str(frame).encode(), "more_body": True})
        except TimeoutError:  # an unfinished answer makes the server cut the connection
            log.info("stream.cut", extra={"why": "the reader takes nothing"})
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def stream_response(description: str, **events: type[Shape]) -> dict[int | str, dict[str, Any]]:
    """Describe the answer of a route that may stream: the events by name, each with the shape of its data."""
    kinds = [_described_event(name, shape) for name, shape in events.items()]
    schema = {
        "type": "string",
        "description": "Server-sent events; `contentSchema` has the fields of each.",
        "contentMediaType": EventStream.media_type,
        "contentSchema": {
            "type": "array",
            "items": kinds[0] if len(kinds) == 1 else {"anyOf": kinds},
        },
    }
    return {200: {"content": {EventStream.media_type: {"schema": schema}}, "description": description}}


ANY_NAME = "any"  # of an event, in `stream_response`


def _described_event(name: str, shape: type[Shape]) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/components/schemas/{shape.__name__}"},
    }
    event = {"type": "string"} if name == ANY_NAME else {"type": "string", "const": name}
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"event": event, "id": {"type": "string"}, "data": data},
    }


def wants_stream(request: Request, *, follow: bool) -> bool:
    return follow or EventStream.media_type in request.headers.get("accept", "")


def read_position(text: str | None, most: int, hint: str) -> int:
    """Return the position in a cursor or Last-Event-ID; 0 without one."""
    if text is None:
        return 0
    if not (text.isascii() and text.isdecimal() and int(text) <= most):
        raise Invalid("This cursor is not one that Foliot gave out.", pointer="/cursor", hint=hint)
    return int(text)


def frame(data: str, *, event: str, id: str | None = None) -> str:  # noqa: A002  # the name of the field
    """Return one event. `data` is JSON, so it has one line."""
    return f"event: {event}\n" + (f"id: {id}\n" if id else "") + f"data: {data}\n\n"


def heartbeat(id: str | None = None) -> str:  # noqa: A002
    """Return a comment that keeps the connection alive, with the id to resume from: an id without data is no event."""
    return ": still here\n" + (f"id: {id}\n" if id else "") + "\n"


class StreamConnection:
    """The connection of one reader. It ends when the reader leaves, its key is revoked, or the server stops."""

    def __init__(self, request: Request, caller: Caller, permission: Permission = Permission.VIEWER) -> None:
        self._request = request
        self._permission = permission
        self._workspace_id = caller.workspace_id
        self._stopping: asyncio.Event = request.app.state.stopping
        self._changes: WorkSignal = request.app.state.changes
        self._mark = self._changes.mark()
        self._nap = NAP
        self._streams: Counter[object] = request.app.state.streams
        self._is_open = False
        self._checked_at = self._spoke_at = monotonic()

    def open(self) -> None:
        """Count the stream as open, or refuse it. Nothing awaits between the check and the count."""
        if self._streams.total() >= MOST or self._streams[self._workspace_id] >= MOST_OF_A_WORKSPACE:
            raise Unavailable(
                "Too many streams are open here.",
                hint="Close one, or share it between readers; then try again.",
            )
        self._streams[self._workspace_id] += 1
        self._is_open = True
        release_place(self._request)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._streams[self._workspace_id] -= 1

    async def carry(self, frames: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
        """Yield the frames. Each one shortens the naps again."""
        async with aclosing(frames):
            with suppress(Unavailable):  # the stream ends; the reader resumes with its last id
                async for each in frames:
                    self._spoke_at, self._nap = monotonic(), NAP
                    yield each

    @contextmanager
    def held(self) -> Iterator[None]:
        """Count the connection as open inside the block: for requests that wait without streaming."""
        self.open()
        try:
            yield
        finally:
            self.close()

    @property
    def is_silent(self) -> bool:
        """Return whether a heartbeat is due: proxies close idle connections."""
        return monotonic() - self._spoke_at >= HEARTBEAT

    async def goes_on(self, *, is_more: bool = False, within: float = LONGEST_NAP) -> bool:
        """Wait for a change, then return whether the stream continues. False as soon as the server stops or the key ends.

        A hint ends the nap, though not before half a second. Naps without a hint grow, because not every change has one.
        `is_more` says that the last query left something: there is no nap then.
        """
        began, nap = monotonic(), 0.0 if is_more else min(self._nap, within)
        while not self._stopping.is_set() and (left := began + nap - monotonic()) > 0:
            # One wait and no task: hundreds of open pages wait here. A stop of the server rings `changes` too.
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, CHECK_EVERY)):
                    await self._mark.wait()
            if not await self._is_admitted():
                return False
            if self._mark.is_set():
                if not self._stopping.is_set():
                    await asyncio.sleep(max(0.0, began + min(nap, NAP) - monotonic()))
                break
        self._nap = NAP if self._mark.is_set() else min(self._nap * 2, LONGEST_NAP)
        self._mark = self._changes.mark()
        return not self._stopping.is_set() and await self._is_admitted()

    async def _is_admitted(self) -> bool:
        """Return whether the key is valid; it is checked every CHECK_EVERY seconds."""
        if monotonic() - self._checked_at < CHECK_EVERY:
            return True
        self._checked_at = monotonic()
        return await self._may_listen()

    async def _may_listen(self) -> bool:
        headers = self._request.headers
        authenticator: Authenticator = self._request.app.state.authenticator
        presented = headers.get("authorization", "").partition(" ")[2].strip()
        try:
            found = await authenticator.enter(presented, headers.get("foliot-workspace"))
        except Unavailable:
            raise
        except FoliotError:  # the workspace is gone
            return False
        return (
            found is not None
            and found.holder.may(self._permission)
            and found.workspace_id == self._workspace_id
        )
