"""Calls of a route inside the process: one request body in, one whole response out. `call_route` passes the same permissions and
checks as a request of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import State
from starlette.types import Message

from foliot.services.identity.authentication import Caller

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class RouteCall:
    """One request to another route. `path` lies below /api/v1 and may have a query."""

    method: str
    path: str
    body: Any = None
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    status: int
    headers: dict[str, str]
    data: Any

    @property
    def is_success(self) -> bool:
        return self.status < 400


class InternalCall:
    """The `receive` and `send` of an ASGI call; collects the response."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._status = 500
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []

    async def receive(self) -> Message:
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            self._parts.append(message.get("body", b""))

    def answer(self) -> ApiAnswer:
        raw = b"".join(self._parts)
        is_json = "json" in self._headers.get("content-type", "")
        return ApiAnswer(self._status, self._headers, json.loads(raw) if is_json and raw else raw)


async def call_route(
    request: Request, call: RouteCall, caller: Caller, replaced: Mapping[str, Any] | None = None
) -> ApiAnswer:
    """Call a route within `request`, as `caller`. `replaced` stands in for parts of the app's state. Errors are raised as they are."""
    raw = b"" if call.body is None else json.dumps(call.body).encode()
    headers = {"accept": "application/json"}
    if call.body is not None:
        headers |= {"content-type": "application/json", "content-length": str(len(raw))}
    if call.if_match is not None:
        headers["if-match"] = call.if_match
    path, _, query = call.path.partition("?")
    whole: Mapping[str, Any] = request.app.state._state  # noqa: SLF001  # State has no copy
    outer = request.scope
    scope = {
        **outer,
        "app": SimpleNamespace(state=State({**whole, **(replaced or {})})),
        "method": call.method,
        "path": PREFIX + path,
        "raw_path": quote(PREFIX + path, safe="/:@").encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()],
        "state": {**outer.get("state", {}), "caller": caller, "is_part": True},
        "path_params": {},
        "starlette.exception_handlers": ({}, {}),
    }
    internal = InternalCall(raw)
    await request.app.router(scope, internal.receive, internal.send)
    return internal.answer()
