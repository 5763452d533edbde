"""`/mcp` over streamable HTTP, `/llms.txt` and its pages. Tools call the API inside the process with the caller's own key.

The SDK of the protocol takes a second to import, so it is loaded by the first request, in a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.mcp.documentation import index, pages
from foliot.sdk import AsyncClient
from foliot.sdk.connection import Connection

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context


def agent_routes(api: ASGIApp) -> list[BaseRoute]:
    return [
        Route("/mcp", McpEndpoint(api), methods=["GET", "POST", "DELETE"], include_in_schema=False),
        Route("/llms.txt", llms_txt, include_in_schema=False),
        Route("/llms/{page:path}.md", llms_page, include_in_schema=False),
    ]


class McpEndpoint:
    """An ASGI application in front of two MCP servers: one with all tools, one with the reading ones for viewers."""

    def __init__(self, api: ASGIApp) -> None:
        self._api = api
        self._lock = asyncio.Lock()
        self._apps: dict[bool, ASGIApp] = {}
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        authorization = request.headers.get("authorization", "")
        if not authorization.lower().startswith("bearer "):
            raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
        me = await self._me(request)
        if me.status_code != 200:
            refusal = Response(me.content, me.status_code, media_type=me.headers.get("content-type"))
            for name in ("retry-after", "www-authenticate"):
                if name in me.headers:
                    refusal.headers[name] = me.headers[name]
            await refusal(scope, receive, send)
            return
        try:
            apps = await self._start()
        except ImportError:
            raise HTTPException(501) from None  # foliot[mcp] is not installed
        await apps[json.loads(me.content)["role"] == "viewer"](scope, receive, send)

    async def _me(self, request: Request) -> httpx2.Response:
        """Every request shows its key before the protocol reads a byte of it."""
        async with self._client(request) as client:
            return await client.get("/api/v1/me")

    async def _start(self) -> dict[bool, ASGIApp]:
        async with self._lock:
            if not self._apps:
                servers = await asyncio.to_thread(self._build)
                self._apps, managers = _applications(servers)
                ready = asyncio.Event()
                self._running = asyncio.create_task(_run(managers, ready))
                await ready.wait()
        return self._apps

    def _build(self) -> dict[bool, MCPServer]:
        from foliot.mcp.server import build_server  # noqa: PLC0415  # slow, see above

        @asynccontextmanager
        async def connect(ctx: Context) -> AsyncIterator[AsyncClient]:
            request = ctx.request_context.request
            assert isinstance(request, Request)
            connection = Connection(
                "http://api.internal",
                request.headers["authorization"].split(" ", 1)[1],
                is_local=True,
                transport=self._transport(request),
            )
            async with AsyncClient(
                connection=connection, workspace=request.headers.get("foliot-workspace"), retries=0
            ) as client:
                yield client

        return {read_only: build_server(connect, read_only=read_only) for read_only in (False, True)}

    def _client(self, request: Request) -> httpx2.AsyncClient:
        sent = {
            name: request.headers[name]
            for name in ("authorization", "foliot-workspace")
            if name in request.headers
        }
        return httpx2.AsyncClient(
            transport=self._transport(request), headers=sent, base_url="http://api.internal"
        )

    def _transport(self, request: Request) -> httpx2.ASGITransport:
        async def internal(scope: Any, receive: Any, send: Any) -> None:
            await self._api({**scope, "foliot.internal": True}, receive, send)

        client = request.client
        address = ("127.0.0.1", 0) if client is None else (client.host, client.port)
        return httpx2.ASGITransport(app=internal, client=address)


def _applications(servers: dict[bool, MCPServer]) -> tuple[dict[bool, ASGIApp], list[Any]]:
    """Stateless: any node or process can answer the next request."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415  # slow

    apps: dict[bool, ASGIApp] = {}
    for read_only, server in servers.items():
        apps[read_only] = server.streamable_http_app(
            streamable_http_path="/mcp",
            stateless_http=True,
            json_response=True,
            # A web page of another origin cannot send the key, which every request must show.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
    return apps, [server.session_manager for server in servers.values()]


async def _run(managers: list[Any], ready: asyncio.Event) -> None:
    """The managers' task groups belong to one task, which lives as long as the process."""
    first, second = managers
    async with first.run(), second.run():
        ready.set()
        await asyncio.Event().wait()


async def llms_txt(request: Request) -> Response:
    return PlainTextResponse(await asyncio.to_thread(index))


async def llms_page(request: Request) -> Response:
    text = (await asyncio.to_thread(pages)).get(request.path_params["page"])
    if text is None:
        raise HTTPException(404)
    return PlainTextResponse(text, media_type="text/markdown")
