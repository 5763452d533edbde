"""Open the HTTP client of a connection: that of httpx2, or a small one for short commands.

Importing httpx2 takes a fifth of a short command. A command that calls a server on this machine by plain HTTP needs no proxies,
certificates or pool; `LoopbackClient` sends its requests with the standard library. It has the methods of httpx2's client that the
transport uses, and raises the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPMessage
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from foliot.sdk.connection import Connection, ssl_context

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 5.0  # seconds
STREAM_TIMEOUT = 60.0  # seconds of silence after which a stream counts as broken


def open_async_client(
    connection: Connection, headers: Mapping[str, str], timeout: float
) -> httpx2.AsyncClient:
    import httpx2  # noqa: PLC0415

    return httpx2.AsyncClient(**_options(connection, headers, timeout), transport=connection.transport)


def open_client(
    connection: Connection, headers: Mapping[str, str], timeout: float
) -> httpx2.Client | LoopbackClient:
    if connection.is_brief and connection.is_local and connection.url.startswith("http:"):
        return LoopbackClient(connection, headers, timeout)
    return _open_httpx_client(connection, headers, timeout)


def stream_timeout(timeout: float) -> httpx2.Timeout:
    """Return the timeouts of a stream, which is silent for longer than an answer takes."""
    import httpx2  # noqa: PLC0415

    return httpx2.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT), read=STREAM_TIMEOUT)


def load_streams() -> None:
    """Import what reads streams."""
    import httpx2  # noqa: F401, PLC0415


def is_transport_error(error: Exception) -> bool:
    import httpx2  # noqa: PLC0415

    return isinstance(error, httpx2.TransportError)


def _open_httpx_client(connection: Connection, headers: Mapping[str, str], timeout: float) -> httpx2.Client:
    import httpx2  # noqa: PLC0415

    return httpx2.Client(**_options(connection, headers, timeout), transport=connection.transport)


def _options(connection: Connection, headers: Mapping[str, str], timeout: float) -> dict[str, Any]:
    import httpx2  # noqa: PLC0415

    return {
        "base_url": connection.url,
        "headers": dict(headers),
        "timeout": httpx2.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
        # http has no certificates
        "verify": ssl_context(connection) if connection.url.startswith("https:") else False,
        "trust_env": not connection.is_local,  # no proxy for this machine
    }


@dataclass(frozen=True, slots=True)
class LoopbackRequest:
    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class LoopbackResponse:
    """A response whose body has been read, with the fields of httpx2's that the client reads."""

    url: str
    status_code: int
    reason_phrase: str
    headers: HTTPMessage
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code < 300


class LoopbackClient:
    """Each request has a connection of its own: none is kept that the server may have closed meanwhile."""

    def __init__(self, connection: Connection, headers: Mapping[str, str], timeout: float) -> None:
        self._connection, self._headers, self._timeout = connection, headers, timeout

    def build_request(
        self,
        method: str,
        path: str,
        *,
        params: Sequence[tuple[str, str]] = (),
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
    ) -> LoopbackRequest | httpx2.Request:
        if timeout is not None:  # of a stream
            return self._streams.build_request(
                method, path, params=list(params), content=content, headers=headers, timeout=timeout
            )
        target = urlsplit(self._connection.url).path.rstrip("/") + path
        query = f"?{urlencode(params)}" if params else ""
        return LoopbackRequest(method, target + query, {**self._headers, **(headers or {})}, content)

    def send(self, request: Any, *, stream: bool = False) -> Any:
        """Send a request. A stream is left to httpx2, which the whole of the stream outweighs."""
        return self._streams.send(request, stream=True) if stream else self._exchange(request)

    def close(self) -> None:
        if "_streams" in self.__dict__:
            self._streams.close()

    @cached_property
    def _streams(self) -> httpx2.Client:
        return _open_httpx_client(self._connection, self._headers, self._timeout)

    def _exchange(self, request: LoopbackRequest) -> LoopbackResponse:
        parts = urlsplit(self._connection.url)
        connected = HTTPConnection(
            parts.hostname or "", parts.port, timeout=min(self._timeout, CONNECT_TIMEOUT)
        )
        try:
            self._connect(connected)
            return self._answer(connected, request)
        finally:
            connected.close()

    def _connect(self, connected: HTTPConnection) -> None:
        try:
            connected.connect()
        except TimeoutError as error:
            raise _errors().ConnectTimeout("the connection timed out") from error
        except OSError as error:
            raise _errors().ConnectError(str(error)) from error

    def _answer(self, connected: HTTPConnection, request: LoopbackRequest) -> LoopbackResponse:
        connected.sock.settimeout(self._timeout)
        try:
            headers = {"Accept": "*/*", "Connection": "close", **request.headers}
            connected.request(request.method, request.target, body=request.content, headers=headers)
            answer = connected.getresponse()
            return LoopbackResponse(
                self._connection.url + request.target,
                answer.status,
                answer.reason,
                answer.headers,
                answer.read(),
            )
        except TimeoutError as error:
            raise _errors().ReadTimeout("the answer timed out") from error
        except (OSError, HTTPException) as error:
            raise _errors().ReadError(str(error)) from error


def _errors() -> Any:
    """Return httpx2, whose errors the client knows."""
    import httpx2  # noqa: PLC0415

    return httpx2
