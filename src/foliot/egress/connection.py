"""One HTTP/1.1 connection: it sends a request, reads the answer with a C parser (llhttp) and knows whether it can be used again.

Limits count bytes as they arrive: all that comes back, and the part of the body that is kept. Bytes that nobody asked for
close the connection: they must never be taken for the answer to the next request.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import httptools

from foliot.egress.url import HttpTarget

KEPT = 64 * 1024  # bytes of an answer
MOST_READ = 1024 * 1024  # bytes of all that comes back, interim answers included
LONGEST_REASON = 200  # characters; the reason may quote what the target sent
# Sent again on a new connection when a kept one turns out to be closed (RFC 9110, section 9.2.2).
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PATH = re.compile(r"[\x21-\x7e]+")
_NO_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class NoAnswer(Exception):
    """The target could not be reached, or did not answer in HTTP. Another try may succeed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ClosedUnanswered(NoAnswer):
    """The target closed the connection without a byte of an answer."""

    def __init__(self) -> None:
        super().__init__("http_failed", "No answer from the target: it closed the connection.")


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """`workspace` owns the connection, which is kept for its next request to the same address; without one it is closed."""

    method: str
    target: HttpTarget
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    content: bytes | None = field(default=None, repr=False)
    workspace: str | None = None


@dataclass(slots=True)  # not frozen: one is made for each request
class HttpAnswer:
    status: int
    reason: str
    headers: Mapping[str, str]  # names in lower case; the first of several with the same name
    body: bytes
    truncated: bool


def write_request(outgoing: OutgoingRequest) -> bytes:
    """Return the request's bytes. Raise NoAnswer if a part of it would not be read as that part."""
    method, path, content = outgoing.method, outgoing.target.path, outgoing.content
    if not _is_token(method):
        raise _unsendable("the method has characters that no method has")
    if _PATH.fullmatch(path) is None:
        raise _unsendable("the path has characters that must be percent-encoded")
    names, values = zip(*outgoing.headers, strict=True) if outgoing.headers else ((), ())
    if not all(map(_is_token, names)) or _NO_VALUE.search("".join(values)):
        raise _unsendable("a header has characters that no header has")
    lines = [f"{name}: {value}" for name, value in outgoing.headers]
    if outgoing.workspace is None:
        lines.append("Connection: close")
    if content is not None or method not in _WITHOUT_BODY:
        lines.append(f"Content-Length: {len(content or b'')}")
    head = "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: {outgoing.target.authority}", *lines, "\r\n"))
    try:
        return head.encode() + (content or b"")
    except UnicodeError:
        raise _unsendable("a header has characters that no header has") from None


@lru_cache(maxsize=1_000)
def _is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


class HttpConnection(asyncio.Protocol):
    """One exchange at a time. The parser calls the `on_…` methods."""

    def __init__(self) -> None:
        self.is_reusable = False
        self.keep_seconds: float | None = None  # how long the target keeps an idle connection, if it says so
        self._transport: Any = None
        self._done: asyncio.Future[HttpAnswer] | None = None

    # Called by the client.

    async def exchange(self, request: bytes, method: str, keep: int) -> HttpAnswer:
        """Send the request and return its answer; the caller then keeps or closes the connection. Raise NoAnswer and close it."""
        self._parser = httptools.HttpResponseParser(self)
        self._is_head = method == "HEAD"
        self._keep, self._received = keep, 0
        self._begin_answer()
        self.is_reusable = False
        self._done = asyncio.get_running_loop().create_future()
        if self.is_closed():
            raise ClosedUnanswered
        self._transport.write(request)
        try:
            return await self._done
        except BaseException:
            self.abort()
            raise
        finally:
            self._done = None

    def is_closed(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def abort(self) -> None:
        """Close at once: a TLS goodbye would wait for the target."""
        if self._transport is not None:
            self._transport.abort()

    def tls_session(self) -> ssl.SSLSession | None:
        secure = self._transport.get_extra_info("ssl_object")
        return None if secure is None else secure.session

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._done is None or self._done.done():
            self.is_reusable = False
            self.abort()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(reusable=False)
        except httptools.HttpParserError as error:
            self._fail(self._unreadable(error))
        if self._done.done():
            return
        if self._received > MOST_READ:
            self._fail(f"it sent more than {MOST_READ // 1024} KiB and no end")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.is_reusable = False
        if self._done is None or self._done.done():
            return
        if isinstance(exc, ssl.SSLError):
            self._done.set_exception(tls_failed(exc))
        elif self._received == 0:
            self._done.set_exception(ClosedUnanswered())
        elif exc is None and self._has_head and self._ends_with_connection:
            self._finish(reusable=False)
        else:
            self._fail("it closed the connection before the end of its answer")

    # Called by the parser.

    def on_status(self, status: bytes) -> None:
        self._reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # later ones are trailers
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._has_head = True
        headers = self._headers
        chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        self._ends_with_connection = not chunked and (
            "content-length" not in headers or "transfer-encoding" in headers
        )
        if self._is_head and self._status >= 200:
            self._finish(reusable=False)

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > self._keep:
            self._finish(reusable=False)

    def on_message_complete(self) -> None:
        if self._status < 200 and self._status != 101:  # interim: the answer is still to come
            self._begin_answer()
        elif self._status != 101:
            self._finish(reusable=self._parser.should_keep_alive())

    def _begin_answer(self) -> None:
        self._status, self._has_head, self._ends_with_connection = 0, False, False
        self._reason, self._body = b"", bytearray()
        self._headers: dict[str, str] = {}

    def _finish(self, *, reusable: bool) -> None:
        if self._done is None or self._done.done():  # a second answer to one request
            self.is_reusable = False
            return
        body, keep = self._body, self._keep
        reason = self._reason.decode("ascii", "replace")
        self.keep_seconds = _keep_seconds(self._headers.get("keep-alive", ""))
        # What is not sent yet would reach the target as the start of the next request.
        self.is_reusable = reusable and not self.is_closed() and self._transport.get_write_buffer_size() == 0
        self._done.set_result(
            HttpAnswer(self._status, reason, self._headers, bytes(body[:keep]), len(body) > keep)
        )

    def _fail(self, why: str) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(no_answer(why))

    def _unreadable(self, error: Exception) -> str:
        if self._status == 0 and not self._headers:
            return "it sent an illegal status line"
        return f"its answer is not HTTP ({error})"


def no_answer(why: str) -> NoAnswer:
    return NoAnswer("http_failed", f"No answer from the target: {why.strip('. ')[:LONGEST_REASON]}.")


def tls_failed(error: ssl.SSLError) -> NoAnswer:
    why = getattr(error, "verify_message", "") or error.reason or str(error)
    return NoAnswer("tls_failed", f"No secure connection to the target: {why.strip('. ')[:LONGEST_REASON]}.")


def _unsendable(why: str) -> NoAnswer:
    return NoAnswer("http_invalid", f"This request cannot be sent: {why}.")


def _keep_seconds(text: str) -> float | None:
    found = re.search(r"timeout=([0-9]{1,6})", text) if text else None
    return None if found is None else float(found[1])
