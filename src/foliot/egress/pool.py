"""Connections that are kept for the next request of the same workspace to the same approved address, and their TLS sessions.

A kept connection is idle for a second at most. Servers close idle connections after two seconds or more: a request that must not be sent
twice would fail if it met the close. Two workspaces never share a connection or a TLS session.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from foliot.egress.connection import HttpConnection, NoAnswer, no_answer, tls_failed

CONNECT_WITHIN = 10.0  # seconds, for all addresses of a name together
LEAST_TO_CONNECT = 2.0  # seconds, for each address
MOST_ADDRESSES = 8  # that are tried
MOST_PER_RECEIVER = 100  # connections of one workspace to one name at one address and port
IDLE_SECONDS = 1.0
MOST_IDLE = 1_000  # connections of all workspaces together
SESSION_SECONDS = 600.0  # for which a TLS session may shorten the next handshake
MOST_SESSIONS = 1_000


class Receiver(NamedTuple):
    """Whom a connection serves and where it leads. `host` is the name that TLS verifies, `address` the approved one."""

    workspace: str | None
    scheme: str
    host: str
    address: str
    port: int


class _Places:
    """Connections of one workspace to one address and port, and the requests that wait for one."""

    def __init__(self) -> None:
        self.taken = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class ConnectionPool:
    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: dict[Receiver, list[tuple[float, HttpConnection]]] = {}
        self._idle_count = 0
        self._sessions: OrderedDict[Receiver, tuple[float, ssl.SSLSession]] = OrderedDict()
        self._places: dict[Receiver, _Places] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def acquire(self, receiver: Receiver) -> None:
        """Wait until the workspace may have one more connection to this address."""
        places = self._places.get(receiver)
        if places is None:
            places = self._places[receiver] = _Places()
        if places.taken < MOST_PER_RECEIVER:
            places.taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        places.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came as it gave up
                self.release(receiver)
            raise

    def release(self, receiver: Receiver) -> None:
        places = self._places[receiver]
        while places.waiting:
            turn = places.waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # it takes over the place
                return
        places.taken -= 1
        if places.taken == 0:
            del self._places[receiver]

    def take(self, receivers: Sequence[Receiver]) -> tuple[Receiver, HttpConnection] | None:
        """Return the connection that was used last, if one is kept."""
        now = asyncio.get_running_loop().time()
        for receiver in receivers:
            kept = self._idle.get(receiver)
            while kept:
                until, connection = kept.pop()
                self._idle_count -= 1
                if not kept:
                    del self._idle[receiver]
                if until >= now and not connection.is_closed():
                    return receiver, connection
                connection.abort()
        return None

    async def connect(self, receivers: Sequence[Receiver]) -> tuple[Receiver, HttpConnection]:
        """Connect to the first address that accepts, or raise NoAnswer."""
        tried = receivers[:MOST_ADDRESSES]
        each = max(LEAST_TO_CONNECT, CONNECT_WITHIN / len(tried))
        *others, last = tried
        for receiver in others:
            try:
                return receiver, await self._secure(receiver, await _reach(receiver, each))
            except (OSError, TimeoutError):
                continue
        try:
            return last, await self._secure(last, await _reach(last, each))
        except TimeoutError as error:
            raise NoAnswer(
                "http_failed", f"The target could not be connected to within {CONNECT_WITHIN:g} s."
            ) from error
        except OSError as error:
            # Without the address: the job's author must not learn what an internal name resolves to.
            raise no_answer(os.strerror(error.errno) if error.errno else type(error).__name__) from error

    def keep(self, receiver: Receiver, connection: HttpConnection) -> None:
        """Keep the connection for the next request, or close it."""
        if receiver.scheme == "https":
            self._keep_session(receiver, connection)
        seconds = min(IDLE_SECONDS, (connection.keep_seconds or 2 * IDLE_SECONDS) - 1)
        if (
            receiver.workspace is None
            or not connection.is_reusable
            or seconds <= 0
            or self._idle_count >= MOST_IDLE
        ):
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        self._idle.setdefault(receiver, []).append((loop.time() + seconds, connection))
        self._idle_count += 1
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._close_idle, loop)

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for kept in self._idle.values():
            for _, connection in kept:
                connection.abort()
        self._idle.clear()
        self._idle_count = 0

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for receiver, kept in list(self._idle.items()):
            alive = [each for each in kept if each[0] >= now and not each[1].is_closed()]
            for each in kept:
                if each not in alive:
                    each[1].abort()
            self._idle_count -= len(kept) - len(alive)
            if alive:
                self._idle[receiver] = alive
            else:
                del self._idle[receiver]
        self._sweep = loop.call_later(IDLE_SECONDS, self._close_idle, loop) if self._idle else None

    async def _secure(self, receiver: Receiver, connected: socket.socket) -> HttpConnection:
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {}
        if receiver.scheme == "https":
            context = _ResumingContext(self._tls, self._session(receiver))
            options = {
                "ssl": context,
                "server_hostname": receiver.host,
                "ssl_handshake_timeout": CONNECT_WITHIN,
            }
        try:
            _, connection = await loop.create_connection(HttpConnection, sock=connected, **options)
        except ssl.SSLError as error:
            self._sessions.pop(receiver, None)
            raise tls_failed(error) from error
        except ConnectionAbortedError as error:  # asyncio's word for a handshake that takes too long
            raise no_answer("no secure connection in time") from error
        return connection

    def _session(self, receiver: Receiver) -> ssl.SSLSession | None:
        found = self._sessions.get(receiver)
        if found is None or found[0] < asyncio.get_running_loop().time():
            return None
        return found[1]

    def _keep_session(self, receiver: Receiver, connection: HttpConnection) -> None:
        """Keep one session for each receiver. TLS 1.3 sends it after the handshake, so it is read after the first answer."""
        now = asyncio.get_running_loop().time()
        found = self._sessions.get(receiver)
        if receiver.workspace is None or connection.is_closed() or (found is not None and found[0] >= now):
            return
        session = connection.tls_session()
        if session is None or not session.has_ticket:
            return
        self._sessions[receiver] = now + SESSION_SECONDS, session
        self._sessions.move_to_end(receiver)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)


class _ResumingContext:
    """A TLS context that offers a session of an earlier connection. asyncio uses nothing else of a context, and has no argument for it."""

    def __init__(self, context: ssl.SSLContext, session: ssl.SSLSession | None) -> None:
        self._context = context
        self._session = session

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | None = None,
    ) -> ssl.SSLObject:
        return self._context.wrap_bio(incoming, outgoing, server_side, server_hostname, self._session)


async def _reach(receiver: Receiver, seconds: float) -> socket.socket:
    """Open a connection to this very address: nothing is resolved here."""
    family = socket.AF_INET6 if ":" in receiver.address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(made, (receiver.address, receiver.port))
    except BaseException:
        made.close()
        raise
    return made
