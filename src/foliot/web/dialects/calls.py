"""Calls of the API's routes from a dialect, and the words that several dialects share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request

from foliot.domain.errors import FoliotError
from foliot.services.identity.authentication import Caller
from foliot.web.internal_calls import RouteCall, call_route
from foliot.wire.durations import read_duration

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """The API as the caller of a dialect's route sees it. Refusals are raised as they are."""

    request: Request
    caller: Caller

    async def get(self, path: str, query: list[tuple[str, str]] | None = None) -> Json:
        return await self._call("GET", path + ("?" + urlencode(query) if query else ""))

    async def post(self, path: str, body: Json | None = None) -> Json:
        return await self._call("POST", path, body or {})

    async def patch(self, path: str, body: Json) -> Json:
        return await self._call("PATCH", path, body, if_match="*")

    async def delete(self, path: str) -> Json:
        return await self._call("DELETE", path, if_match="*")

    async def _call(
        self, method: str, path: str, body: Json | None = None, if_match: str | None = None
    ) -> Json:
        answer = await call_route(self.request, RouteCall(method, path, body, if_match), self.caller)
        return answer.data if isinstance(answer.data, dict) else {}


def job_path(job_id: str, verb: str = "") -> str:
    return f"/jobs/{quote(job_id, safe='')}" + (f"/{verb}" if verb else "")


def duration(milliseconds: float) -> str:
    return f"{round(milliseconds)}ms"


def seconds_of(text: str) -> int:
    """Whole seconds of a duration as the API writes it, such as 1h30m."""
    return int(read_duration(text).total_seconds())


def milliseconds_of(text: str) -> int:
    return round(read_duration(text) / timedelta(milliseconds=1))


def first_reason(error: FoliotError) -> str:
    return (error.parts[0] if error.parts else error).message
