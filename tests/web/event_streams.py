"""The API on a socket, and readers of its event streams."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import uvicorn

from tests.web.conftest import ApiHarness

WITHIN = 20.0


@dataclass(frozen=True)
class StreamEvent:
    """One frame of a stream; `event` is None for a heartbeat."""

    event: str | None
    id: str | None
    data: Any


class Reader:
    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def frame(self) -> StreamEvent | None:
        """Return the next frame, or None at the end."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(WITHIN):
            async for line in self._lines:
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    data = fields.get("data")
                    return StreamEvent(fields.get("event"), fields.get("id"), data and json.loads(data))
        return None

    async def event(self) -> StreamEvent | None:
        """Return the next frame that is no heartbeat."""
        while (found := await self.frame()) is not None and found.event is None:
            pass
        return found

    async def events(self, count: int) -> list[StreamEvent]:
        found = [await self.event() for _ in range(count)]
        return [each for each in found if each is not None]


@dataclass
class StreamServer:
    api: ApiHarness
    http: httpx.AsyncClient
    app: Any

    @asynccontextmanager
    async def stream(
        self, path: str, *, who: str = "acme", role: str = "viewer", key: str | None = None, **headers: str
    ) -> AsyncIterator[Reader]:
        bearer = {"Authorization": f"Bearer {key or self.api.keys[who, role]}"}
        sent = bearer | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.stream("GET", f"/api/v1{path}", headers=sent) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield Reader(answer)


@asynccontextmanager
async def serve_streams(api: ApiHarness) -> AsyncIterator[StreamServer]:
    app = api.http._transport.app  # type: ignore[attr-defined]
    server = uvicorn.Server(
        uvicorn.Config(app, lifespan="off", ws="none", log_config=None, timeout_graceful_shutdown=2)
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(server.serve([listening]))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, timeout=WITHIN, trust_env=False) as http:
            yield StreamServer(api, http, app)
        app.state.stopping.set()
        server.should_exit = True
        async with asyncio.timeout(WITHIN):
            await task
