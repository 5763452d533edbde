"""uvicorn with bounds: how many connections, how long a request's head may take, and which proxies may name their clients.

A connection that has not sent the head of a request costs a file and some memory. There is a limit to them, and at the limit
the oldest one that waits is cut, so that half-sent requests cannot keep others out.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from foliot.clock import monotonic

log = logging.getLogger(__name__)
HEAD_WITHIN = (
    10.0  # seconds from the first byte of a request, or from the connection, to the end of its headers
)
KEEP_ALIVE = 30.0  # seconds that a connection may rest between requests
LARGEST_HEAD = 64 << 10  # bytes
MOST_CONNECTIONS = 4_000
RESERVED_FILES = 100  # for the database, logs and artifacts
SAID_EVERY = 10.0  # seconds between log lines about cut connections


class HttpServer(uvicorn.Server):
    on_started: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Keep uvicorn from handling signals: the node stops its parts in its own order."""
        yield


def server_config(app: ASGIApp, *, grace: int, trusted_proxies: Sequence[str] = ()) -> uvicorn.Config:
    """Configure uvicorn. Only a proxy in `trusted_proxies` may say by X-Forwarded-For and -Proto for whom it asks."""
    logging.getLogger("uvicorn.error").addFilter(_is_about_us)
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_keep_alive=int(KEEP_ALIVE),
        timeout_graceful_shutdown=grace,
    )


def raise_file_limit() -> None:
    """Let this process open as many files as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + RESERVED_FILES
    if soft < wanted:
        highest = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))


def most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MOST_CONNECTIONS, max(soft - RESERVED_FILES, RESERVED_FILES))


class CutConnections:
    """Counts connections that were cut, and logs the counts now and then: an attack must not fill the log."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._said_at = monotonic() - SAID_EVERY

    def count(self, reason: str) -> None:
        self._counts[reason] += 1
        if monotonic() - self._said_at >= SAID_EVERY:
            self._said_at = monotonic()
            log.warning("connections.cut", extra=dict(self._counts))
            self._counts.clear()


_cut = CutConnections()
_waiting: OrderedDict[BoundedProtocol, None] = (
    OrderedDict()
)  # connections without a request, the oldest first


class BoundedProtocol(HttpToolsProtocol):
    """One connection. It is cut when the head of a request takes too long or is too large."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _waiting[self] = None
        self._start_head()
        if len(self.connections) > most_connections():
            oldest = next(iter(_waiting))
            oldest.cut("too_many")

    def connection_lost(self, exc: Exception | None) -> None:
        _waiting.pop(self, None)
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD:
                self.cut("large_head")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        self._start_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        _waiting.pop(self, None)
        self._end_head()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self.pipeline:
            _waiting[self] = None

    def cut(self, reason: str) -> None:
        """Cut the connection without an answer: its client sent no whole request."""
        _waiting.pop(self, None)
        _cut.count(reason)
        self.transport.abort()

    def _start_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_WITHIN, self._on_late_head)

    def _on_late_head(self) -> None:
        """Cut the connection, unless it still waits for the answer to an earlier request."""
        self._head_timer = None
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            self._start_head()
        else:
            self.cut("slow_head")

    def _end_head(self) -> None:
        self._is_in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _is_about_us(record: logging.LogRecord) -> bool:
    """Drop uvicorn's line for each malformed request: any client can cause as many as it likes."""
    return "Invalid HTTP request" not in record.msg and "Unsupported upgrade" not in record.msg
