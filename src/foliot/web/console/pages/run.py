"""One run: what happened, since when, what was different before, its attempts, log, input, output and files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from foliot.domain.field_changes import differences
from foliot.web.console.api import Api, ApiRefusal, field_refusal, read_json
from foliot.web.console.pages.log import LOG_LINES
from foliot.web.console.session import api_of
from foliot.web.console.site import Context, Visit, action, done, page, render, shell_of
from foliot.web.console.text import parse

FAILED = ("failed", "timed_out", "interrupted")
OPEN = ("ready", "waiting", "running")
MOST_ATTEMPTS = 12  # drawn; the newest
MOST_CHANGES = 40
LONGEST_TEXT = 100_000  # bytes of a file that is shown on the page
SAME_ERROR_SINCE = "7d"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
TEXTS = frozenset({"application/json", "application/x-ndjson", "application/xml", "application/yaml"})


@page("run.html", "runs")
async def run_page(visit: Visit) -> Context:
    run_id, api = visit.path["run_id"], visit.api
    run, attempts, explanation, artifacts = await asyncio.gather(
        api.get(f"/runs/{run_id}"),
        api.get(f"/runs/{run_id}/attempts"),
        api.get(f"/runs/{run_id}/explain"),
        api.get(f"/runs/{run_id}/artifacts"),
    )
    job_id, has_failed = run["job_id"], run["status"] in FAILED
    fingerprint = run["error"]["fingerprint"] if run["error"] else None
    job, good, later, incidents, same, logs, revisions = await asyncio.gather(
        api.get(f"/jobs/{job_id}"),
        api.get(f"/jobs/{job_id}/runs", q=f"status:succeeded before:{run['planned_for']}", limit=1),
        _nothing() if not has_failed else api.get(f"/jobs/{job_id}/runs", q=f"status:succeeded after:{run['planned_for']}", limit=1),
        _optional(api, "/incidents", job_id=job_id, state="open", limit=1),
        _optional(api, "/runs/summary", q=f"error:{fingerprint}", since=SAME_ERROR_SINCE) if fingerprint else _nothing(),
        api.get(f"/runs/{run_id}/logs", tail=LOG_LINES),
        api.get(f"/jobs/{job_id}/revisions", limit=20),
    )  # fmt: skip
    last_good = next(iter(good["items"]), None)
    shown = await _preview(api, run_id, artifacts["items"], visit.param("show"))
    return {
        "run": run,
        "job": job,
        "zone_of_job": job["schedule"].get("timezone"),
        "has_failed": has_failed,
        "is_open": run["status"] in OPEN,
        "attempts": _timeline(visit, run, attempts["items"]),
        "attempt_count": len(attempts["items"]),
        "explanation": explanation,
        "lines": logs["items"],
        "log_truncated": bool(logs.get("truncated")),
        "artifacts": artifacts["items"],
        "shown": shown,
        "images": IMAGES,
        "texts": TEXTS,
        "last_good": last_good,
        "recovered": next(iter(later["items"]), None),
        "incident": next(iter(incidents["items"]), None),
        "same": next((each for each in same.get("errors", []) if each["fingerprint"] == fingerprint), None),
        "same_is_complete": same.get("complete", True),
        "comparison": _comparison(run, last_good, revisions["items"]) if last_good else None,
    }


async def _optional(api: Api, path: str, **params: str | int) -> dict[str, Any]:
    """A part of the page that some keys may not read."""
    answer = await api.answer("GET", path, params=params)
    return answer.data if answer.is_success else {"items": []}


async def _nothing() -> dict[str, Any]:
    return {"items": []}


def _timeline(visit: Visit, run: dict[str, Any], attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest attempts on one axis, from the planned time (or the oldest drawn) to the end of the run or to now: how long each waited and ran, as percent."""
    if not attempts:
        return []
    drawn = attempts[-MOST_ATTEMPTS:]
    skipped = len(attempts) - len(drawn)
    begin = (
        parse(attempts[skipped - 1]["finished_at"] or run["planned_for"])
        if skipped
        else min(parse(run["planned_for"]), parse(drawn[0]["started_at"]))
    )
    if run["trigger"] in ("retry", "backfill") and not skipped:
        begin = min(
            parse(run["created_at"]), parse(drawn[0]["started_at"])
        )  # the planned time has passed long before
    end = parse(run["finished_at"]) if run["finished_at"] else visit.reader.now
    ahead = (run.get("next_attempt") or {}).get("at")
    whole = max(end - begin, timedelta(milliseconds=1))
    rows, before = [], begin
    for attempt in drawn:
        start = parse(attempt["started_at"])
        stop = parse(attempt["finished_at"]) if attempt.get("finished_at") else visit.reader.now
        rows.append(
            attempt
            | {
                "waited": _percent(before, start, begin, whole),
                "ran": _percent(start, stop, begin, whole),
                "waited_ms": max((start - before) / timedelta(milliseconds=1), 0),
                "ran_ms": (stop - start) / timedelta(milliseconds=1),
                "is_first": attempt["number"] == 1,
            }
        )
        before = stop
    if ahead and before < end:
        rows.append({"number": run["next_attempt"]["number"], "status": "pending", "waited": _percent(before, end, begin, whole), "ran": (100.0, 0.0), "next_at": ahead, "error": None, "worker_name": None, "worker": None})  # fmt: skip
    return rows


def _percent(start: datetime, stop: datetime, begin: datetime, whole: timedelta) -> tuple[float, float]:
    left = min(max((start - begin) / whole, 0.0), 1.0)
    return round(left * 100, 2), round(min(max((stop - start) / whole, 0.0), 1.0 - left) * 100, 2)


def _comparison(run: dict[str, Any], good: dict[str, Any], revisions: list[dict[str, Any]]) -> dict[str, Any]:
    """What is different from the last good run: input, output, time taken, and the edits of the job in between."""
    since = parse(good["started_at"] or good["planned_for"])
    until = parse(run["started_at"] or run["finished_at"] or run["planned_for"])
    return {
        "input": _changes(good["input"], run["input"]),
        "output": _changes(good["output"], run["output"]),
        "edits": [each for each in revisions if since < parse(each["at"]) <= until],
        "same_worker": good["worker"] == run["worker"],
    }


def _changes(before: Any, after: Any) -> list[dict[str, Any]]:
    old = before if isinstance(before, Mapping) else {"": before}
    new = after if isinstance(after, Mapping) else {"": after}
    return [
        {"path": each.path.strip("/").replace("/", "."), "before": each.before, "after": each.after}
        for each in islice(differences(old, new), MOST_CHANGES)
    ]


# ---- files


async def _preview(
    api: Api, run_id: str, artifacts: list[dict[str, Any]], name: str
) -> dict[str, Any] | None:
    """The file that the address names, as text or as an image. Others are downloads."""
    file = next((each for each in artifacts if each["name"] == name), None)
    if file is None:
        return None
    if file["media_type"] in IMAGES:
        return {"name": name, "kind": "image"}
    kind = file["media_type"].partition(";")[0].strip().lower()
    if not (kind.startswith("text/") or kind in TEXTS):
        return None
    head = _Head(LONGEST_TEXT)
    await api.forward(f"/runs/{run_id}/artifacts/{name}", {}, head.receive, head.send, {"accept": "*/*"})
    return {"name": name, "kind": "text", "text": head.text, "is_cut": file["size"] > LONGEST_TEXT}


class _Head:
    """The `receive` and `send` of a call that hangs up after the first bytes of its answer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._body = bytearray()
        self._is_full = asyncio.Event()

    @property
    def text(self) -> str:
        return bytes(self._body[: self._most]).decode("utf-8", "replace")

    async def receive(self) -> Message:
        await self._is_full.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self._body += message.get("body", b"")
        if len(self._body) >= self._most:
            self._is_full.set()


class Download:
    """An artifact, handed on from the API with its own headers, always as a download."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await _hand_on(request, receive, send)


class View:
    """An image or a PDF that the browser may show. It can run no script, load nothing, and its type is not guessed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def inline(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                headers = {name.lower(): value for name, value in message["headers"]}
                kind = headers.get(b"content-type", b"").decode("latin-1")
                if kind in IMAGES or kind == "application/pdf":
                    sandbox = (
                        b"" if kind == "application/pdf" else b"sandbox; "
                    )  # a sandboxed PDF is not shown
                    headers[b"content-disposition"] = b"inline"
                    headers[b"content-security-policy"] = (
                        sandbox + b"default-src 'none'; frame-ancestors 'none'"
                    )
                headers[b"x-content-type-options"] = b"nosniff"
                message = {**message, "headers": list(headers.items())}
            await send(message)

        await _hand_on(Request(scope, receive), receive, inline)


async def _hand_on(request: Request, receive: Receive, send: Send) -> None:
    run_id, name = request.path_params["run_id"], request.path_params["name"]
    await api_of(request).forward(f"/runs/{run_id}/artifacts/{name}", {}, receive, send, {"accept": "*/*"})


# ---- actions


async def cancel(visit: Visit) -> Response:
    run_id, reason = visit.path["run_id"], visit.field("reason")
    await visit.api.call("POST", f"/runs/{run_id}/cancel", {"reason": reason} if reason else {})
    return done(f"/console/runs/{run_id}", "run-cancelled")


async def retry(visit: Visit) -> Response:
    """Repeat the run; with `input`, after a look at what the edit changes."""
    run_id, raw = visit.path["run_id"], visit.field("input")
    if not raw:
        made = await visit.api.call("POST", f"/runs/{run_id}/retry", {})
        return done(f"/console/runs/{made['id']}", "run-retried")
    problems: list[str] = []
    run = await visit.api.get(f"/runs/{run_id}")
    changes: list[dict[str, Any]] = []
    try:
        given = _read_object(raw)
        changes = _changes(run["input"] or {}, given)
        body = {"input": given}
        call = f"/runs/{run_id}/retry"
        if visit.field("step") == "run":
            made = await visit.api.call("POST", call, body)
            return done(f"/console/runs/{made['id']}", "run-retried")
        await visit.api.call("POST", call, body, params={"dry_run": "true"})
    except ApiRefusal as refusal:
        if refusal.status not in (409, 422):
            raise
        problems = refusal.sentences
    gone = [each for each in changes if each["after"] is None]
    return await _retry_form(visit, run, raw, problems, changes, gone)


def _read_object(raw: str) -> dict[str, Any]:
    given = read_json("input", raw)
    if not isinstance(given, dict):
        raise field_refusal("input", "This must be a JSON object.")
    return given


async def _retry_form(
    visit: Visit,
    run: dict[str, Any],
    raw: str,
    problems: list[str],
    changes: list[dict[str, Any]],
    gone: list[dict[str, Any]],
) -> Response:
    shell = await shell_of(visit)
    context = {"run": run, "raw": raw, "problems": problems, "changes": changes, "gone": gone}
    return render(visit, "retry.html", {**shell, "active": "runs", **context}, 422 if problems else 200)


@page("retry.html", "runs", "operator")
async def edit_input(visit: Visit) -> Context:
    run = await visit.api.get(f"/runs/{visit.path['run_id']}")
    return {"run": run, "raw": None, "problems": [], "changes": None, "gone": []}


ROUTES = [
    Route("/runs/{run_id}", run_page),
    Route("/runs/{run_id}/cancel", action(cancel), methods=["POST"]),
    Route("/runs/{run_id}/retry", action(retry), methods=["POST"]),
    Route("/runs/{run_id}/edit", edit_input),
    Route("/runs/{run_id}/artifacts/{name}", Download()),
    Route("/runs/{run_id}/artifacts/{name}/view", View()),
]
