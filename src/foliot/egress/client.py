"""Send one request to an approved address and read its answer: for http jobs, webhooks and channels.

The name is resolved once, every address it has must be allowed, and the connection goes to one of those: a resolver that answers
differently a moment later changes nothing. Redirects are answers like any other, proxies of the environment are ignored, and two requests
share nothing.

Why: docs/decisions/900-guarded-outgoing-requests.md
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import httpcore2

from foliot.domain.addresses import Address, Network, closed
from foliot.egress.url import HttpTarget

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
# A name whose servers never answer blocks a thread for longer than any request waits. There are more threads than a courier or a worker can
# use in that time, or the names of one tenant would delay those of all others.
MOST_AT_ONCE = 256


class Unresolved(Exception):
    """The name does not exist, or its servers do not answer."""


class SystemResolver:
    """Resolve names with the system's resolver, in threads of its own: slow names delay no other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except OSError as error:
            raise Unresolved(error.strerror or str(error)) from error
        return list(dict.fromkeys(found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    # As bytes, or Python would encode the name by its own rules.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


CONNECT_WITHIN = 10.0  # seconds, for all addresses of a name together
LEAST_TO_CONNECT = 2.0  # seconds, for each address
MOST_ADDRESSES = 8  # that are tried
KEPT = 64 * 1024  # bytes of an answer
MOST_READ = 1024 * 1024  # bytes of all that comes back, interim answers included
LONGEST_REASON = 200  # characters; the reason may quote what the target sent
ALLOW = "An operator can allow it in FOLIOT_EGRESS_ALLOW, on every node, worker and host."


class AddressRefused(Exception):
    """Nothing was sent: the target is not in a network that may be called."""

    code = "address_refused"


class NoAnswer(Exception):
    """The target could not be reached, or did not answer in HTTP. Another try may succeed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    method: str
    target: HttpTarget
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    reason: str
    headers: Mapping[str, str]  # names in lower case; the first of several with the same name
    body: bytes
    truncated: bool


def refusal(host: str, addresses: Iterable[Address], allowed: Sequence[Network]) -> str | None:
    """Return the message that refuses a target, or None. One address that may not be called refuses the whole name."""
    for address in addresses:
        found = closed(address, allowed)
        if found is not None:
            return f"{found.describe(host)}, which may not be called from here. {ALLOW}"
    return None


class Egress:
    """Create one for a process: its TLS settings are slow to load."""

    def __init__(
        self,
        allowed: Sequence[Network] = (),
        *,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = tuple(allowed)
        self._own = SystemResolver() if resolve is None else None
        self._resolve: Resolve = resolve or self._own  # type: ignore[assignment]  # one of the two is there
        self._tls = tls or ssl.create_default_context()

    async def send(self, outgoing: OutgoingRequest, keep: int = KEPT) -> HttpAnswer:
        """Send the request, or raise AddressRefused or NoAnswer. The caller sets a deadline."""
        target = outgoing.target
        pinned = _Pinned(await self.approve(target))
        host = target.host.rstrip(".").encode("ascii")
        url = httpcore2.URL(scheme=target.scheme, host=host, port=target.port, target=target.path)
        headers = [("Host", target.authority), *outgoing.headers]
        encoded: Any = [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers]
        timeouts = {"timeout": {"connect": CONNECT_WITHIN}}
        try:
            async with (
                httpcore2.AsyncHTTPConnection(
                    url.origin, ssl_context=self._tls, network_backend=pinned
                ) as connection,
                connection.stream(
                    outgoing.method, url, headers=encoded, content=outgoing.content, extensions=timeouts
                ) as response,
            ):
                return await _answer(response, keep)
        except (httpcore2.LocalProtocolError, UnicodeError) as error:
            raise NoAnswer("http_invalid", f"This request cannot be sent: {error}.") from error
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
            raise _no_answer(error) from error

    async def approve(self, target: HttpTarget) -> tuple[Address, ...]:
        """Return the addresses of a target, all of which may be called."""
        literal = target.address
        if literal is not None:
            found: tuple[Address, ...] = (literal,)
        else:
            try:
                texts = await self._resolve(target.host, target.port)
            except Unresolved as error:
                raise NoAnswer(
                    "name_unknown", f"The name {target.host} cannot be resolved: {error}."
                ) from error
            found = tuple(ip_address(text.partition("%")[0]) for text in texts)
        if not found:
            raise NoAnswer("name_unknown", f"The name {target.host} has no address.")
        refused = refusal(target.host, found, self._allowed)
        if refused is not None:
            raise AddressRefused(refused)
        return found

    def close(self) -> None:
        if self._own is not None:
            self._own.close()


class _Pinned(httpcore2.AsyncNetworkBackend):
    """Connect to these addresses only, whatever the host: names are for TLS and the Host header."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses[:MOST_ADDRESSES]
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature is theirs
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        each = max(LEAST_TO_CONNECT, (timeout or CONNECT_WITHIN) / len(self._addresses))
        *others, last = self._addresses
        for address in others:
            try:
                return _Bounded(await self._network.connect_tcp(str(address), port, timeout=each))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return _Bounded(await self._network.connect_tcp(str(last), port, timeout=each))


class _Bounded(httpcore2.AsyncNetworkStream):
    """Limit the bytes read: interim answers (1xx) and chunk extensions could come without end."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, left: int = MOST_READ) -> None:
        self._stream = stream
        self._left = left

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        piece = await self._stream.read(max_bytes, timeout)
        self._left -= len(piece)
        if self._left < 0:
            raise httpcore2.ReadError(f"it sent more than {MOST_READ // 1024} KiB and no end")
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return _Bounded(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


async def _answer(response: httpcore2.Response, keep: int) -> HttpAnswer:
    body = bytearray()
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > keep:
            break
    headers: dict[str, str] = {}
    for name, value in response.headers:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    reason = bytes(response.extensions.get("reason_phrase", b"")).decode("ascii", "replace")
    return HttpAnswer(response.status, reason, headers, bytes(body[:keep]), len(body) > keep)


def _no_answer(error: Exception) -> NoAnswer:
    cause = error.__cause__
    if isinstance(cause, ssl.SSLError):
        why = getattr(cause, "verify_message", "") or cause.reason or str(cause)
        return NoAnswer("tls_failed", f"No secure connection to the target: {why}.")
    if isinstance(error, httpcore2.TimeoutException):
        return NoAnswer("http_failed", f"The target could not be connected to within {CONNECT_WITHIN:g} s.")
    why = str(error).strip(". ")[:LONGEST_REASON] or type(error).__name__
    return NoAnswer("http_failed", f"No answer from the target: {why}.")


BUSY = frozenset({429, 503})  # codes whose Retry-After is respected


def reason_of(answer: HttpAnswer) -> str:
    """Return the target's reason phrase, as far as it is printable, else that of HTTP."""
    return "".join(filter(str.isprintable, answer.reason))[:100].strip() or _phrase(answer.status)


def retry_after(answer: HttpAnswer, now: datetime) -> timedelta | None:
    return parse_retry_after(answer.headers.get("retry-after", ""), now) if answer.status in BUSY else None


def parse_retry_after(text: str, now: datetime) -> timedelta | None:
    """Parse seconds or an HTTP date. Return None for anything else, and for no wait."""
    text = text.strip()
    try:
        if text.isascii() and text.isdecimal():
            wait = timedelta(seconds=int(text[:10]))
        else:
            wait = timedelta(seconds=int((parsedate_to_datetime(text) - now).total_seconds()))
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait > timedelta(0) else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
