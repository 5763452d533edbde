"""The API on a real database and a socket, and a server that sends scripted answers."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import uvicorn

from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database
from foliot.testing.fixtures import a_vault
from foliot.web.app import create_app
from foliot.web.health import Readiness


@dataclass(frozen=True)
class ApiServer:
    url: str
    key: str
    app: Any


@pytest.fixture
async def api_server(database: Database) -> AsyncIterator[ApiServer]:
    async def probe() -> Readiness:
        return Readiness()

    first = await first_start(database, tzdata_version="2026a")
    assert first is not None
    stopping = asyncio.Event()
    app = create_app(probe, stopping, database, lambda hint: None, vault=a_vault())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        port = listening.getsockname()[1]
        yield ApiServer(f"http://127.0.0.1:{port}", first.secret, app)
        stopping.set()
        server.should_exit = True
        await serving


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """Sends the answers in order and repeats the last one; None closes the connection."""

    url: str
    answers: list[tuple[int, dict[str, str], Any] | None] = field(default_factory=list)
    got: list[ReceivedRequest] = field(default_factory=list)


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.got.append(
                ReceivedRequest(self.command, self.path, dict(self.headers), json.loads(raw) if raw else None)
            )
            now = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            if now is None:
                self.close_connection = True
                return
            status, headers, body = now
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script = ScriptedServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield script
        server.shutdown()
        thread.join()
