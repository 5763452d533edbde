"""What every request gets: an id, the headers of a cautious server, and one line in the log."""

from __future__ import annotations

import logging
import re
import uuid
from time import perf_counter

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.web.errors import unforeseen
from foliot.web.rate_limits import told

log = logging.getLogger(__name__)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
PROBES = frozenset({"/healthz", "/readyz"})  # asked every few seconds: worth a line only when debugging


class Requests:
    """Pure ASGI, because a wrapper that buffers would hold back streams."""

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
                rate = told(scope["state"].get("rate"))
                known = (b"x-request-id", request_id.encode())
                given = {name for name, _ in message["headers"]}
                added = [
                    each for each in HEADERS if each[0] not in given
                ]  # the console has its own content policy
                message["headers"] = [*message["headers"], *added, *rate, known]
            await send(message)

        facts = {"method": scope["method"], "path": scope["path"], "request": request_id}
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            log.exception("request.failed", extra=facts)
            if status is not None:
                raise  # half an answer is out: the server must cut the connection so that nobody takes it for whole
            await unforeseen(Request(scope))(scope, receive, send_with_headers)
        is_quiet = scope["path"] in PROBES or scope.get("foliot.internal", False)
        level = logging.DEBUG if is_quiet else logging.INFO
        took = round((perf_counter() - began) * 1000, 1)
        log.log(level, "request.served", extra=facts | {"status": status, "ms": took})


def _chosen_by_client(scope: Scope) -> str | None:
    """A client's own id is kept when it is plain enough to be logged and echoed."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and re.fullmatch(rb"[A-Za-z0-9._-]{8,64}", value):
            return str(value.decode())
    return None
