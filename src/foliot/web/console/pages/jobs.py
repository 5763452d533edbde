"""Jobs: the list with its query, one job with its times, runs and revisions, and the actions on it."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, read_json, read_number
from foliot.web.console.site import Context, Visit, action, done, page
from foliot.wire.jobs import JobIn, JobOut

PAGE = 50
STRIP = 60
CHIPS = (
    ("", "All"),
    ("status:active", "Active"),
    ("failures>=1", "Failing"),
    ("status:paused", "Paused"),
    ("status:disabled", "Disabled"),
    ("status:completed,expired", "Finished"),
    ("status:archived", "Archived"),
)


@page("jobs.html", "jobs")
async def job_list(visit: Visit) -> Context:
    query = visit.param("q")
    problem = None
    found: dict[str, Any] = {"items": [], "next_cursor": None}
    try:
        found = await visit.api.get(
            "/jobs",
            q=query or None,
            sort=visit.param("sort") or None,
            cursor=visit.param("cursor") or None,
            limit=PAGE,
        )
    except ApiRefusal as refusal:
        if refusal.status != 422:
            raise
        problem = refusal.sentences[0]
    return {
        "q": query,
        "sort": visit.param("sort"),
        "jobs": found["items"],
        "next_cursor": found["next_cursor"],
        "problem": problem,
        "chips": CHIPS,
    }


@page("job.html", "jobs")
async def job_page(visit: Visit) -> Context:
    job_id, api = visit.path["job_id"], visit.api
    job, ahead, history, explanation, stats, revisions = await asyncio.gather(
        api.get(f"/jobs/{job_id}"),
        api.get(f"/jobs/{job_id}/next", n=5),
        api.get(f"/jobs/{job_id}/runs", limit=STRIP),
        api.get(f"/jobs/{job_id}/explain", at=visit.param("at") or None),
        api.get(f"/jobs/{job_id}/stats", days=14),
        api.get(f"/jobs/{job_id}/revisions", limit=10),
    )
    definition = {
        name: job[name] for name in job if name not in _NOT_DEFINITION and job[name] not in (None, [], {}, "")
    }
    return {
        "job": job,
        "zone_of_job": job["schedule"].get("timezone"),
        "ahead": ahead["items"],
        "runs": history["items"],
        "strip": [_mark(visit, run, job) for run in reversed(history["items"])],
        "explanation": explanation,
        "asked_at": visit.param("at"),
        "stats": stats,
        "revisions": revisions["items"],
        "definition": definition,
    }


_NOT_DEFINITION = frozenset(JobOut.model_fields) - frozenset(JobIn.model_fields) | {"owner", "enabled"}


def _mark(visit: Visit, run: dict[str, Any], job: dict[str, Any]) -> dict[str, object]:
    reader = visit.reader
    from foliot.web.console.text import parse  # noqa: PLC0415

    why = f" ({run['skip_reason']})" if run["skip_reason"] else ""
    word = reader.translate(run["status"].replace("_", " "))
    title = f"{reader.absolute(parse(run['planned_for']), job['schedule'].get('timezone'))}: {word}{why}"
    return {"status": run["status"], "title": title, "href": f"/console/runs/{run['id']}"}


def _simple(verb: str, message: str, body: dict[str, str] | None = None) -> Any:
    """An action without fields beyond `reason`, `until`."""

    async def perform(visit: Visit) -> Response:
        job_id = visit.path["job_id"]
        given = {name: value for name in (body or {}) if (value := visit.field(name))}
        await visit.api.call("POST", f"/jobs/{job_id}/{verb}", given if body is not None else None)
        return done(f"/console/jobs/{job_id}", message)

    return action(perform)


async def run_now(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    raw = visit.field("input")
    body = {"input": read_json("input", raw)} if raw else {}
    run = await visit.api.call("POST", f"/jobs/{job_id}/run", body)
    return done(f"/console/runs/{run['id']}", "run-created")


async def delete(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    await visit.api.call("DELETE", f"/jobs/{job_id}")
    return done("/console/jobs", "job-archived")


async def revert(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    revision = read_number("revision", visit.field("revision"))
    await visit.api.call("POST", f"/jobs/{job_id}/revert", {"revision": revision})
    return done(f"/console/jobs/{job_id}", "job-reverted")


ROUTES = [
    Route("/jobs", job_list),
    Route("/jobs/{job_id}", job_page),
    Route("/jobs/{job_id}/run", action(run_now), methods=["POST"]),
    Route(
        "/jobs/{job_id}/pause",
        _simple("pause", "job-paused", {"reason": "", "until": ""}),
        methods=["POST"],
    ),
    Route("/jobs/{job_id}/resume", _simple("resume", "job-resumed", {}), methods=["POST"]),
    Route("/jobs/{job_id}/disable", _simple("disable", "job-disabled", {"reason": ""}), methods=["POST"]),
    Route(
        "/jobs/{job_id}/skip-next",
        _simple("skip-next", "job-skips", {"reason": ""}),
        methods=["POST"],
    ),
    Route("/jobs/{job_id}/delete", action(delete), methods=["POST"]),
    Route("/jobs/{job_id}/revert", action(revert), methods=["POST"]),
]
