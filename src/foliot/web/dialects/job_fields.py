"""Names of job fields from two older systems, in the bodies of POST and PATCH /jobs beside the names of the API.

One writes schedule_kind, cron_expr, interval_ms, run_at, payload_kind, payload_text, room_id, max_failures, agent; the other
cronExpression, jobType, executionWindowStart, executionWindowEnd, retryPolicy, serverInstanceId.
"""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.web.dialects.calls import Json, duration
from foliot.web.strict_json import InvalidJson, read_json

_JOBS = re.compile(rb"/api/v1/jobs(?:/[^/]+)?")
SNAKE = frozenset(
    (
        "schedule_kind",
        "cron_expr",
        "interval_ms",
        "run_at",
        "payload_kind",
        "payload_text",
        "room_id",
        "max_failures",
        "agent",
    )
)
CAMEL = frozenset(
    (
        "cronExpression",
        "jobType",
        "executionWindowStart",
        "executionWindowEnd",
        "retryPolicy",
        "serverInstanceId",
    )
)
LARGEST = 1 << 20


class JobFieldsMiddleware:
    """Rewrites the body of a write of jobs, where it has names of a dialect. Everything else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_write = scope["type"] == "http" and scope["method"] in {"POST", "PATCH"}
        if not is_write or not _JOBS.fullmatch(scope["path"].encode()):
            await self.app(scope, receive, send)
            return
        parts: list[Message] = []
        size, more = 0, True
        while more and size <= LARGEST:
            message = await receive()
            parts.append(message)
            more = message["type"] == "http.request" and message.get("more_body", False)
            size += len(message.get("body", b""))
        raw = b"".join(part.get("body", b"") for part in parts)
        rewritten = None if more or parts[-1]["type"] != "http.request" else _rewritten(raw)
        if rewritten is None:
            await self.app(scope, _Replay(parts, receive), send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        headers.append((b"content-length", str(len(rewritten)).encode()))
        whole: Message = {"type": "http.request", "body": rewritten, "more_body": False}
        await self.app({**scope, "headers": headers}, _Replay([whole], receive), send)


class _Replay:
    def __init__(self, parts: list[Message], receive: Receive) -> None:
        self._parts, self._receive = parts, receive

    async def __call__(self) -> Message:
        return self._parts.pop(0) if self._parts else await self._receive()


def _rewritten(raw: bytes) -> bytes | None:
    """Return the body with the names of the API; None where it has none of a dialect, or is no JSON object."""
    try:
        body = read_json(raw)
    except InvalidJson:
        return None  # the API refuses it by name
    if not isinstance(body, dict) or not (SNAKE | CAMEL) & body.keys():
        return None
    return json.dumps(translate(body)).encode()


def translate(body: Json) -> Json:
    """Names of the API win where a body has both. A value of another type passes as it is: the API refuses it."""
    own = {name: value for name, value in body.items() if name not in SNAKE | CAMEL | {"timezone"}}
    fields: dict[str, Any] = {}
    _schedule(body, fields)
    if (kind := body.get("payload_kind")) is not None or "payload_text" in body:
        fields["type"] = "message"
        fields["config"] = {"text": body.get("payload_text") or ""}
        if kind is not None:
            fields["config"]["kind"] = kind
        if body.get("room_id") is not None:
            fields["config"]["room"] = body["room_id"]
    if body.get("max_failures") is not None:
        fields["breaker"] = {"after": body["max_failures"], "action": "pause"}
    if body.get("agent") is not None:
        fields["owner"] = body["agent"]
    if body.get("jobType") is not None:
        fields["type"] = body["jobType"]
    start, end = body.get("executionWindowStart"), body.get("executionWindowEnd")
    if start is not None or end is not None:
        window = {"start": start, "end": end}
        fields["window"] = {name: value for name, value in window.items() if value is not None}
    policy = body.get("retryPolicy")
    if policy is not None and not isinstance(policy, dict):
        fields["retry"] = policy
    elif policy is not None:
        fields["retry"] = {
            "max": policy.get("maxRetries", 2),
            "strategy": policy.get("backoffType", "fixed"),
            "base": _duration(policy.get("backoffMs", 2000)),
        }
    if body.get("serverInstanceId") is not None:
        fields["target"] = {"server": body["serverInstanceId"]}
    return {**fields, **own}


def _schedule(body: Json, fields: Json) -> None:
    """The kind says which field counts; without it, the field that is there."""
    zone = {} if body.get("timezone") is None else {"timezone": body["timezone"]}
    given = {
        "cron": {"expr": body.get("cron_expr") or body.get("cronExpression"), **zone},
        "interval": {"every": _duration(body.get("interval_ms"))},
        "once": {"at": body.get("run_at")},
    }
    kind = body.get("schedule_kind")
    if kind is None:
        kind = next(
            (name for name, of_kind in given.items() if next(iter(of_kind.values())) is not None), None
        )
    if kind is not None:
        of_kind = given.get(kind, {}) if isinstance(kind, str) else {}
        fields["schedule"] = {"kind": kind} | {
            name: value for name, value in of_kind.items() if value is not None
        }


def _duration(milliseconds: Any) -> Any:
    is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    return duration(milliseconds) if is_number else milliseconds
