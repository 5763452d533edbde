"""An HTTP server that keeps requests and answers what a test tells it to."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class KeptRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class HttpPeer:
    """`answers` are statuses with a body; when they are used up, `default` is the answer. None never answers; bytes begin an answer
    that never ends. Lines behind a status are headers. While the gate is closed, answers wait for it.
    """

    default: tuple[str, str] = ("200 OK", "ok")
    answers: list[tuple[str, str] | bytes | None] = field(default_factory=list)
    came: list[KeptRequest] = field(default_factory=list)
    port: int = 0
    scheme: str = "http"
    gate: asyncio.Event | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@asynccontextmanager
async def http_peer(
    default: tuple[str, str] = ("200 OK", "ok"), tls: ssl.SSLContext | None = None
) -> AsyncIterator[HttpPeer]:
    peer = HttpPeer(default, scheme="http" if tls is None else "https")
    open_: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return
        first, *lines = head.split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ")
        peer.came.append(KeptRequest(method, path, headers, body))
        answer = peer.answers.pop(0) if peer.answers else peer.default
        if peer.gate is not None:
            await peer.gate.wait()
        if answer is None or isinstance(answer, bytes):
            writer.write(answer or b"")
            await reader.read()
        else:
            status, said = answer
            data = said.encode()
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\nconnection: close\r\n\r\n".encode()
                + data
            )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    async with server:
        yield peer
        for each in open_:
            each.close()
