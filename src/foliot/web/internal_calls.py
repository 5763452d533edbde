"""Calls of a route inside the process: one request body in, one whole response out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from starlette.types import Message


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
