"""Runs: the list with its query, and one run with its attempts, log, input and output."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from foliot.web.console.api import ApiRefusal
from foliot.web.console.session import api_of
from foliot.web.console.site import Context, Visit, action, done, page
from foliot.web.console.text import milliseconds, parse

PAGE = 50
LOG_LINES = 200
CHIPS = (
    ("", "All"),
    ("status:running,ready,waiting", "Open"),
    ("status:failed,timed_out,interrupted", "Failed"),
    ("status:skipped", "Skipped"),
    ("status:succeeded", "Succeeded"),
    ("since:24h", "Last 24 h"),
)


@page("runs.html", "runs")
async def run_list(visit: Visit) -> Context:
    query, problem = visit.param("q"), None
    found: dict[str, Any] = {"items": [], "next_cursor": None}
    try:
        found = await visit.api.get(
            "/runs", q=query or None, cursor=visit.param("cursor") or None, limit=PAGE
        )
    except ApiRefusal as refusal:
        if refusal.status != 422:
            raise
        problem = refusal.sentences[0]
    return {
        "q": query,
        "runs": found["items"],
        "next_cursor": found["next_cursor"],
        "problem": problem,
        "chips": CHIPS,
    }


@page("run.html", "runs")
async def run_page(visit: Visit) -> Context:
    run_id, api = visit.path["run_id"], visit.api
    run, attempts, explanation, logs, artifacts = await asyncio.gather(
        api.get(f"/runs/{run_id}"),
        api.get(f"/runs/{run_id}/attempts"),
        api.get(f"/runs/{run_id}/explain"),
        api.get(f"/runs/{run_id}/logs", limit=LOG_LINES),
        api.get(f"/runs/{run_id}/artifacts"),
    )
    job, good = await asyncio.gather(
        api.get(f"/jobs/{run['job_id']}"),
        api.get(f"/jobs/{run['job_id']}/runs", q="status:succeeded", limit=1),
    )
    last_good = next((each for each in good["items"] if each["id"] != run["id"]), None)
    return {
        "run": run,
        "job": job,
        "zone_of_job": job["schedule"].get("timezone"),
        "attempts": attempts["items"],
        "spans": _spans(visit, run, attempts["items"]),
        "explanation": explanation,
        "lines": logs["items"],
        "log_truncated": bool(logs.get("truncated")),
        "artifacts": artifacts["items"],
        "last_good": last_good,
        "is_open": run["status"] in ("ready", "waiting", "running"),
    }


def _spans(
    visit: Visit, run: dict[str, Any], attempts: list[dict[str, Any]]
) -> list[tuple[str, float, float, str]]:
    """Attempts on an axis from the planned time to the end of the run, or to now."""
    if not attempts:
        return []
    begin = parse(run["planned_for"])
    end = parse(run["finished_at"]) if run["finished_at"] else visit.reader.now
    whole = max((end - begin), timedelta(milliseconds=1))
    spans = []
    for attempt in attempts:
        start = parse(attempt["started_at"])
        stop = parse(attempt["finished_at"]) if attempt.get("finished_at") else visit.reader.now
        title = f"#{attempt['number']} {attempt['status']}, {milliseconds((stop - start) / timedelta(milliseconds=1))}"
        spans.append(
            (attempt["status"], max((start - begin) / whole, 0.0), min((stop - begin) / whole, 1.0), title)
        )
    return spans


async def cancel(visit: Visit) -> Response:
    run_id = visit.path["run_id"]
    await visit.api.call(
        "POST", f"/runs/{run_id}/cancel", {"reason": visit.field("reason")} if visit.field("reason") else {}
    )
    return done(f"/console/runs/{run_id}", "run-cancelled")


async def retry(visit: Visit) -> Response:
    run = await visit.api.call("POST", f"/runs/{visit.path['run_id']}/retry", {})
    return done(f"/console/runs/{run['id']}", "run-retried")


class Download:
    """An artifact, handed on from the API with its own headers, always as a download."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        run_id, name = request.path_params["run_id"], request.path_params["name"]
        await api_of(request).forward(
            f"/runs/{run_id}/artifacts/{name}", {}, receive, send, {"accept": "*/*"}
        )


ROUTES = [
    Route("/runs", run_list),
    Route("/runs/{run_id}", run_page),
    Route("/runs/{run_id}/cancel", action(cancel), methods=["POST"]),
    Route("/runs/{run_id}/retry", action(retry), methods=["POST"]),
    Route("/runs/{run_id}/artifacts/{name}", Download()),
]
