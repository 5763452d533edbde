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
from starlette.types import Send

from foliot.clock import monotonic
from foliot.domain.access import Permission
from foliot.domain.errors import FoliotError, Invalid, Unavailable
from foliot.services.identity.authentication import Authenticator, Caller
from foliot.web.admission import release_place

log = logging.getLogger(__name__)

NAP = 0.5  # seconds between queries
HEARTBEAT = 15.0
CHECK_EVERY = 1.0  # seconds between checks of the key; with the authentication cache, less than five in all
SLOWEST = 30.0  # seconds that a reader may leave its connection full
MOST, MOST_OF_A_WORKSPACE = 500, 100  # open at once in one process


class EventStream(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[str, None]) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._frames = frames

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


def stream_response(description: str) -> dict[int | str, dict[str, Any]]:
    """Describe the answer of a route that may stream."""
    content = {EventStream.media_type: {"schema": {"type": "string"}}}
    return {200: {"content": content, "description": description}}


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
    """The open stream of one reader. It ends when the reader leaves, its key is revoked, or the server stops."""

    def __init__(self, request: Request, caller: Caller, permission: Permission = Permission.VIEWER) -> None:
        self._request = request
        self._permission = permission
        self._workspace_id = caller.workspace_id
        self._stopping: asyncio.Event = request.app.state.stopping
        self._open: Counter[object] = request.app.state.streams
        self._checked_at = self._spoke_at = monotonic()
        if self._open.total() >= MOST or self._open[self._workspace_id] >= MOST_OF_A_WORKSPACE:
            raise Unavailable(
                "Too many streams are open here.",
                hint="Close one, or share it between readers; then try again.",
            )
        release_place(request)

    async def carry(self, frames: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
        """Yield the frames and count the stream as open meanwhile."""
        with self.held():
            async with aclosing(frames):
                with suppress(Unavailable):  # the stream ends; the reader resumes with its last id
                    async for each in frames:
                        self._spoke_at = monotonic()
                        yield each

    @contextmanager
    def held(self) -> Iterator[None]:
        """Count a stream as open meanwhile."""
        self._open[self._workspace_id] += 1
        try:
            yield
        finally:
            self._open[self._workspace_id] -= 1

    @property
    def is_silent(self) -> bool:
        """Return whether a heartbeat is due: proxies close idle connections."""
        return monotonic() - self._spoke_at >= HEARTBEAT

    async def goes_on(self, nap: float = NAP) -> bool:
        """Sleep, then return whether the stream continues. False as soon as the server stops."""
        try:
            await asyncio.wait_for(self._stopping.wait(), max(nap, 0.001))
        except TimeoutError:
            pass
        else:
            return False
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
