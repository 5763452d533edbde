"""The end of HTTP with streams open: they end by themselves on request, and are cut when they do not listen."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from fastapi.responses import StreamingResponse

from foliot.storage.tx import Database
from foliot.web.app import create_app
from foliot.web.health import Readiness
from foliot.wiring.http_server import HttpServer, server_config

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ready() -> Readiness:
    return Readiness()


async def end_with_a_stream_open(*, polite: bool, grace: int) -> bytes:
    """Open a stream, ask the server to end, and return what the client got in all."""
    stopping, started = asyncio.Event(), asyncio.Event()
    app = create_app(ready, stopping, Database(""), lambda _: None)

    async def ticks() -> AsyncIterator[str]:
        yield "data: first\n\n"
        await (stopping if polite else asyncio.Event()).wait()
        yield "data: last\n\n"

    app.add_api_route("/stream", lambda: StreamingResponse(ticks(), media_type="text/event-stream"))
    http = HttpServer(server_config(app, grace=grace))
    http.on_started = started.set
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(http.serve([listening]))
        await started.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n")
        got = await reader.readuntil(b"data: first\n\n")
        stopping.set()
        http.should_exit = True
        async with asyncio.timeout(10):
            await serving
            got += await reader.read()
        writer.close()
    return got


async def test_a_stream_that_listens_ends_with_its_last_word() -> None:
    assert b"data: last" in await end_with_a_stream_open(polite=True, grace=10)


async def test_a_stream_that_does_not_listen_is_cut_after_the_grace() -> None:
    assert b"data: last" not in await end_with_a_stream_open(polite=False, grace=1)
