"""Find the methods that an address takes. Starlette asks one route after the other and stops at the first whose path fits, so that a 405 names
that route's methods alone, and `PUT /jobs/bulk` would look for a job with the id "bulk".
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.web.errors import internal_error, refused
from foliot.web.health import PROBES
from foliot.web.rate_limits import rate_headers

GET, HEAD, OPTIONS = "GET", "HEAD", "OPTIONS"


class RouteMethods:
    """The paths of the app, each with all its methods."""

    def __init__(self, routes: Iterable[Any]) -> None:
        found: dict[str, set[str]] = {}
        for route in iter_route_contexts(list(routes)):
            methods = route.methods or set()
            found.setdefault(str(route.path), set()).update(methods | ({HEAD} if GET in methods else set()))
        self._plain = {path: frozenset(methods) for path, methods in found.items() if "{" not in path}
        self._patterns: list[tuple[re.Pattern[str], frozenset[str]]] = [
            (compile_path(path)[0], frozenset(methods)) for path, methods in found.items() if "{" in path
        ]

    def refuses(self, method: str, path: str) -> bool:
        """Return whether exactly this path exists and does not take the method. It is then no id in another path."""
        known = self._plain.get(path)
        return known is not None and method not in known

    def allowed(self, path: str) -> str | None:
        """Return the value of the header Allow; None for an unknown path."""
        methods = self._plain.get(path) or next(
            (methods for pattern, methods in self._patterns if pattern.match(path)), None
        )
        return None if methods is None else ", ".join(sorted(methods | {OPTIONS}))


class MethodMiddleware:
    """Answers OPTIONS, answers HEAD of the API as GET without the body, and refuses methods that a path does not take."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            addresses: RouteMethods = scope["app"].state.addresses
            method, path = scope["method"], scope["path"]
            if method == OPTIONS and (allow := addresses.allowed(path)) is not None:
                await Response(status_code=204, headers={"Allow": allow})(scope, receive, send)
                return
            if addresses.refuses(method, path):
                answer = await refused(Request(scope), HTTPException(405))
                await answer(scope, receive, send)
                return
            if method == HEAD and path.startswith("/api/"):
                scope, send = {**scope, "method": GET, "foliot.head": True}, _without_body(send)
        await self._app(scope, receive, send)


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


LEAST_COMPRESSED = 16 << 10  # bytes
COMPRESSION_LEVEL = 4


class CompressionMiddleware:
    """Compresses large answers of the API for clients that accept gzip.

    Pages of the console are left alone: they show text of others beside a form token, and their size would betray the token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=LEAST_COMPRESSED, compresslevel=COMPRESSION_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] == "http" and scope["path"].startswith("/api/")
        has_own_form = "/artifacts/" in scope.get(
            "path", ""
        )  # files are sent as they are, under their own ETag
        chosen = self._compressed if is_api and not has_own_form else self._app
        await chosen(scope, receive, send)


log = logging.getLogger(__name__)
_SECRET_PATH = re.compile(r"^(/hooks/|/feeds/agenda/)[^/]+")  # the token in it is a secret: the log has none
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


class RequestMiddleware:
    """Pure ASGI: BaseHTTPMiddleware buffers, which would delay streams."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope.setdefault("state", {})["request_id"] = (
            _chosen_by_client(scope) or uuid.uuid4().hex
        )
        began = perf_counter()
        status: int | None = None

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                rate = rate_headers(scope["state"].get("rate"))
                known = (b"x-request-id", request_id.encode())
                given = {name for name, _ in message["headers"]}
                added = [
                    each for each in HEADERS if each[0] not in given
                ]  # the console has its own content policy
                message["headers"] = [*message["headers"], *added, *rate, known]
            await send(message)

        path = _SECRET_PATH.sub(r"\1…", scope["path"])
        facts = {"method": scope["method"], "path": path, "request": request_id}
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            log.exception("request.failed", extra=facts)
            if status is not None:
                raise  # part of the answer is sent: cut the connection, so that the client sees it is incomplete
            await internal_error(Request(scope))(scope, receive, send_with_headers)
        # Probes come every few seconds: they are logged only when debugging.
        is_quiet = scope["path"] in PROBES or scope.get("foliot.internal", False)
        level = logging.DEBUG if is_quiet else logging.INFO
        took = round((perf_counter() - began) * 1000, 1)
        log.log(level, "request.served", extra=facts | {"status": status, "ms": took})


def _chosen_by_client(scope: Scope) -> str | None:
    """Return the client's request id if it is safe to log and to echo."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and re.fullmatch(rb"[A-Za-z0-9._-]{8,64}", value):
            return str(value.decode())
    return None
