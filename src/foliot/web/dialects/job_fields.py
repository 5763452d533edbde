"""Names of job fields from two older systems, in bodies and answers of /jobs beside the names of the API.

One has schedule_kind, cron_expr, interval_ms, run_at, payload_kind, payload_text, room_id, max_failures, agent; the other
cronExpression, jobType, executionWindowStart, executionWindowEnd, retryPolicy, serverInstanceId, lastRunStatus.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.web.dialects.calls import Json, duration, milliseconds_of
from foliot.web.strict_json import InvalidJson, read_json

_JOBS = re.compile(rb"/api/v1/jobs(?:/[^/]+)?")
SNAKE = {
    "schedule_kind", "cron_expr", "interval_ms", "run_at", "payload_kind", "payload_text", "room_id", "max_failures", "agent",
}  # fmt: skip
CAMEL = {
    "cronExpression", "jobType", "executionWindowStart", "executionWindowEnd", "retryPolicy", "serverInstanceId",
}  # fmt: skip
ONLY_IN_ANSWERS = {
    "lastRunAt", "lastRunStatus", "lastRunJobId", "nextRunAt", "runCount", "failureCount", "createdById", "createdAt",
    "updatedAt",
}  # fmt: skip
LARGEST = 1 << 20


class JobFieldsMiddleware:
    """Adds the names of a dialect to answers of /jobs, and takes them in its bodies. Everything else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_public = scope["type"] == "http" and not scope.get("foliot.internal")
        if not is_public or not _JOBS.fullmatch(scope["path"].encode()):
            await self.app(scope, receive, send)
            return
        if scope["method"] in {"POST", "PUT", "PATCH"}:
            scope, receive = await _with_names_of_the_api(scope, receive)
        await self.app(scope, receive, _AnswerWithOlderNames(send))


async def _with_names_of_the_api(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """Read the body, and return the request with a body that has only names of the API."""
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
        return scope, _Replay(parts, receive)
    headers = _with_length(scope["headers"], len(rewritten))
    whole: Message = {"type": "http.request", "body": rewritten, "more_body": False}
    return {**scope, "headers": headers}, _Replay([whole], receive)


def _with_length(headers: Iterable[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    return [*kept, (b"content-length", str(length).encode())]


class _AnswerWithOlderNames:
    """Sends an answer on. One that shows jobs is kept until it is whole, and then has the names of the dialect too."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _shows_jobs(message):
            self._start = message
            return
        if self._start is None or message["type"] != "http.response.body":
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        body = _with_older_names(self._body)
        await self._send({**self._start, "headers": _with_length(self._start["headers"], len(body))})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _shows_jobs(start: Message) -> bool:
    kind = dict(start["headers"]).get(b"content-type", b"").partition(b";")[0]
    return start["status"] in (200, 201) and kind == b"application/json"


def _with_older_names(raw: bytes) -> bytes:
    answer = json.loads(raw) if raw else None  # a HEAD has none
    if not isinstance(answer, dict):
        return raw
    for job in answer["items"] if isinstance(answer.get("items"), list) else [answer]:
        if isinstance(job, dict) and "schedule" in job:
            job.update(older_names(job))
    return json.dumps(answer, separators=(",", ":")).encode()


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
    if not isinstance(body, dict) or not (SNAKE | CAMEL | ONLY_IN_ANSWERS) & body.keys():
        return None
    return json.dumps(translate(body)).encode()


def translate(body: Json) -> Json:
    """Names of the API win where a body has both. A value of another type passes as it is: the API refuses it."""
    own = {
        name: value
        for name, value in body.items()
        if name not in SNAKE | CAMEL | ONLY_IN_ANSWERS | {"timezone"}
    }
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


def older_names(job: Json) -> Json:
    """Return the names of both systems with the values of a job, as an answer of the API shows it.

    The other system calls a fire a run, and shows what became of the last one: "success" as soon as its run is in the queue.
    """
    schedule, config, retry = job["schedule"], job.get("config") or {}, job.get("retry") or {}
    expression, every = schedule.get("expr"), schedule.get("every")
    is_message, window, target = (
        job.get("type") == "message",
        job.get("window") or {},
        job.get("target") or {},
    )
    return {
        "schedule_kind": schedule.get("kind"),
        "cron_expr": expression,
        "interval_ms": None if every is None else milliseconds_of(every),
        "run_at": schedule.get("at"),
        "timezone": schedule.get("timezone"),
        "payload_kind": config.get("kind") if is_message else None,
        "payload_text": config.get("text") if is_message else None,
        "room_id": config.get("room") if is_message else None,
        "max_failures": (job.get("breaker") or {}).get("after"),
        "agent": job.get("owner_name"),
        "cronExpression": expression,
        "jobType": job.get("type"),
        "executionWindowStart": window.get("start"),
        "executionWindowEnd": window.get("end"),
        "retryPolicy": {
            "maxRetries": retry.get("max"),
            "backoffMs": None if retry.get("base") is None else milliseconds_of(retry["base"]),
            "backoffType": "fixed" if retry.get("strategy") == "fixed" else "exponential",
        },
        "serverInstanceId": target.get("server"),
        "lastRunAt": job.get("last_fire_at"),
        "lastRunStatus": _last_run_status(job),
        "lastRunJobId": job.get("last_fire_run_id"),
        "nextRunAt": job.get("next_run_at"),
        "runCount": job.get("fire_count"),
        "failureCount": job.get("failure_count", 0) + job.get("schedule_error_count", 0),
        "createdById": job.get("created_by"),
        "createdAt": job.get("created_at"),
        "updatedAt": job.get("updated_at"),
    }


def _last_run_status(job: Json) -> str | None:
    fired: str | None = job.get("last_fire_status")
    if fired != "queued":
        return fired  # skipped, scheduler_failed, or none yet
    has_ended = job.get("last_run_id") == job.get("last_fire_run_id")
    return "success" if not has_ended or job.get("last_run_status") == "succeeded" else "failed"


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
