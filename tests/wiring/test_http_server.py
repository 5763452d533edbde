"""The HTTP server's bounds: heads that never end, too many connections, ambiguous lengths, and headers of proxies."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from foliot.wiring import http_server
from foliot.wiring.http_server import HttpServer, server_config

pytestmark = pytest.mark.anyio
WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: here\r\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def who_asks(scope: Scope, receive: Receive, send: Send) -> None:
    answer = JSONResponse({"client": scope["client"][0], "scheme": scope["scheme"]})
    await answer(scope, receive, send)


@asynccontextmanager
async def serving(trusted_proxies: Sequence[str] = ()) -> AsyncIterator[int]:
    http, started = (
        HttpServer(server_config(who_asks, grace=1, trusted_proxies=trusted_proxies)),
        asyncio.Event(),
    )
    http.on_started = started.set
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(http.serve([listening]))
        await started.wait()
        yield listening.getsockname()[1]
        http.should_exit = True
        await task


@dataclass
class Peer:
    """A client's end of a connection. Without the writer, Python would close it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read_to_end(self) -> bytes:
        try:
            async with asyncio.timeout(20):
                return await self.reader.read()
        except ConnectionResetError:
            return b""
        finally:
            self.writer.close()


async def connect(port: int, sent: bytes) -> Peer:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
    peer.writer.write(sent)
    return peer


async def answer_of(port: int, head: bytes) -> dict[str, str]:
    peer = await connect(port, head)
    body = (await peer.reader.readuntil(b"}")).partition(b"\r\n\r\n")[2]
    peer.writer.close()
    answer: dict[str, str] = json.loads(body)
    return answer


async def test_a_head_that_never_ends_is_cut_also_on_a_connection_that_was_served_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "HEAD_WITHIN", 0.05)
    async with serving() as port:
        assert await (await connect(port, HALF)).read_to_end() == b""
        assert await (await connect(port, b"")).read_to_end() == b""
        peer = await connect(port, WHOLE + HALF)
        assert b"127.0.0.1" in await peer.reader.readuntil(b"}")
        assert await peer.read_to_end() == b""


async def test_a_head_that_is_too_large_is_cut() -> None:
    async with serving() as port:
        assert await (await connect(port, HALF + b"X-Padding: " + b"a" * 100_000)).read_to_end() == b""


async def test_at_the_limit_the_oldest_connection_without_a_request_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "most_connections", lambda: 2)
    async with serving() as port:
        slow = [await connect(port, HALF)]
        slow.append(await connect(port, HALF))
        served = await connect(port, WHOLE)
        assert b"200 OK" in await served.reader.readline()
        assert await slow[0].read_to_end() == b""
        assert not slow[1].reader.at_eof()
        for each in (slow[1], served):
            each.writer.close()


async def test_malformed_requests_write_no_log_line_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with serving() as port:
        for _ in range(5):
            assert b"400" in await (await connect(port, b"\x00\x01\r\n\r\n")).read_to_end()
    assert not [record for record in caplog.records if "Invalid HTTP" in record.getMessage()]


async def test_a_request_with_two_lengths_is_refused() -> None:
    """Two programs in a row would read two different requests."""
    head = (
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    async with serving() as port:
        assert b"400" in (await (await connect(port, head)).read_to_end()).splitlines()[0]


async def test_only_a_trusted_proxy_names_its_client() -> None:
    head = WHOLE.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n\r\n")
    async with serving() as port:
        assert await answer_of(port, head) == {"client": "127.0.0.1", "scheme": "http"}
    async with serving(["10.0.0.0/8"]) as port:
        assert await answer_of(port, head) == {"client": "127.0.0.1", "scheme": "http"}
    async with serving(["127.0.0.0/8"]) as port:
        assert await answer_of(port, head) == {"client": "203.0.113.9", "scheme": "https"}
