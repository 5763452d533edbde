"""The editor: one screen for a new or an existing job, with the sentence and the next times beside the form."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any
from zoneinfo import available_timezones

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, field_refusal, read_json, read_number
from foliot.web.console.session import api_of
from foliot.web.console.site import (
    SECURITY_HEADERS,
    Context,
    Visit,
    action,
    done,
    environment,
    page,
    render,
    shell_of,
)

KINDS = ("words", "cron", "interval", "once", "manual")
SCHEDULE = ("kind", "when", "timezone")
SIX_FIELDS = 6  # a cron expression that starts with seconds
TIMES = 10
EXAMPLES = (
    "every weekday at 9am",
    "every 15 minutes",
    "every other tuesday at 14:30",
    "tomorrow at 18:00",
    "on the 1st of every month at 6am",
)
OVERLAPS = ("skip", "queue", "queue_one", "cancel_running", "concurrent")
MISFIRES = ("latest", "all", "skip")
BLANK: dict[str, str] = {
    "name": "", "description": "", "kind": "words", "when": "every weekday at 9am", "timezone": "", "type": "http", "config": "", "url": "",
    "method": "POST", "payload": "", "tags": "", "queue": "default", "timeout": "10m", "overlap": "skip", "misfire": "latest", "retry_max": "3",
    "retry_delays": "5m, 15m, 30m", "note": "",
}  # fmt: skip


@page("editor.html", "jobs", least="editor")
async def new_job(visit: Visit) -> Context:
    fields = BLANK | {name: visit.param(name) for name in BLANK if visit.param(name)}
    if source := visit.param("copy"):
        if "/" in source:  # another address of the API
            raise ApiRefusal(404, {"detail": "There is no such job."})
        fields = fields_of(await visit.api.get(f"/jobs/{source}"))
        fields["name"] += " copy"
    return await form_context(visit, fields, None)


@page("editor.html", "jobs", least="editor")
async def edit_job(visit: Visit) -> Context:
    answer = await visit.api.answer("GET", f"/jobs/{visit.path['job_id']}")
    if not answer.is_success:
        raise ApiRefusal(answer.status, answer.data)
    return await form_context(visit, fields_of(answer.data), answer.data, etag=answer.headers.get("etag", ""))


async def form_context(
    visit: Visit,
    fields: dict[str, str],
    job: dict[str, Any] | None,
    *,
    problems: list[str] | None = None,
    etag: str = "",
) -> Context:
    types, me, shown = await asyncio.gather(
        visit.api.get("/job-types"), visit.api.get("/me"), preview_of(visit, fields, job)
    )
    fields = fields | {"timezone": fields["timezone"] or me["workspace"]["default_timezone"]}
    return {
        "fields": fields, "job": job, "problems": problems or [], "etag": etag, "kinds": KINDS, "examples": EXAMPLES,
        "types": [each for each in types["items"] if each["enabled"]], "overlaps": OVERLAPS, "misfires": MISFIRES,
        "zones": sorted(available_timezones()), **shown,
    }  # fmt: skip


async def preview_of(visit: Visit, fields: dict[str, str], job: dict[str, Any] | None = None) -> Context:
    """The sentence and the next times of what the form says now, or why it cannot be read."""
    if fields["kind"] == "manual":
        return {"preview": None, "preview_problem": None, "zone_of_form": fields["timezone"] or "UTC"}
    is_stored = job is not None and not _differ(fields, fields_of(job), SCHEDULE)
    schedule = job["schedule"] if job and is_stored else schedule_of(fields)
    answer = await visit.api.answer("POST", "/preview", schedule, params={"n": TIMES})
    if answer.is_success:
        return {
            "preview": answer.data,
            "preview_problem": None,
            "zone_of_form": answer.data["schedule"].get("timezone") or "UTC",
        }
    refusal = ApiRefusal(answer.status, answer.data)
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        raise refusal
    return {
        "preview": None,
        "preview_problem": refusal.sentences[0],
        "zone_of_form": fields["timezone"] or "UTC",
    }


async def preview_part(request: Request) -> Response:
    """Render the right side of the editor alone. The page requests it while the user types."""
    visit = Visit(request, api_of(request))
    fields = BLANK | {name: visit.param(name) for name in ("kind", "when", "timezone")}
    shown = await preview_of(visit, fields)
    reader = visit.reader
    html = environment().get_template("preview_part.html").render(
        **shown, _=reader.translate, full_time=reader.full_time, time=reader.time
    )  # fmt: skip
    return HTMLResponse(html, headers=SECURITY_HEADERS)


async def save(visit: Visit) -> Response:
    """Create or replace. What the API refuses comes back in the form with its sentences."""
    fields = {
        name: visit.field(name, default if name in ("kind", "type") else "")
        for name, default in BLANK.items()
    }
    job_id = visit.path.get("job_id")
    before = await visit.api.get(f"/jobs/{job_id}") if job_id else None
    try:
        if before is None:
            job = await visit.api.call("POST", "/jobs", body_of(fields))
            return done(f"/console/jobs/{job['id']}", "job-created")
        headers = {"if-match": visit.field("etag")} if visit.field("etag") else {}
        await visit.api.call("PATCH", f"/jobs/{job_id}", changes_of(before, fields), headers=headers)
    except ApiRefusal as refusal:
        if refusal.status not in (400, 409, 412, 422):
            raise
        context, shell = await asyncio.gather(
            form_context(visit, fields, before, problems=refusal.sentences, etag=visit.field("etag")),
            shell_of(visit),
        )
        return render(visit, "editor.html", {**shell, "active": "jobs", **context}, refusal.status)
    return done(f"/console/jobs/{job_id}", "job-saved")


def schedule_of(fields: dict[str, str]) -> dict[str, Any]:
    """The schedule as the API takes it. An empty zone leaves the choice to the workspace."""
    when = fields["when"].strip()
    zone = {"timezone": fields["timezone"]} if fields["timezone"] else {}
    match fields["kind"]:
        case "cron":
            return {"kind": "cron", "expr": when, "seconds": len(when.split()) == SIX_FIELDS, **zone}
        case "interval":
            return {"kind": "interval", "every": when}
        case "once":
            return {"kind": "once", "at": when, **zone}
        case "manual":
            return {"kind": "manual"}
        case _:
            return {"words": when, **zone}


def body_of(fields: dict[str, str]) -> dict[str, Any]:
    """The job as the API takes it; raises ApiRefusal where a JSON field is not JSON."""
    config = _json_object("config", fields["config"])
    if fields["type"] == "http" and fields["url"]:
        config |= {"url": fields["url"], "method": fields["method"] or "POST"}
    delays = [part.strip() for part in fields["retry_delays"].split(",") if part.strip()]
    retry_max = read_number("retry_max", fields["retry_max"] or "0")
    retry: dict[str, Any] = (
        {"max": retry_max, "strategy": "none"}
        if not retry_max
        else {"max": retry_max, "strategy": "list", "delays": delays}
    )
    return {
        "name": fields["name"], "description": fields["description"], "type": fields["type"], "config": config,
        "payload": _json_object("payload", fields["payload"]), "schedule": schedule_of(fields),
        "tags": [tag.strip() for tag in fields["tags"].split(",") if tag.strip()], "queue": fields["queue"] or "default",
        "timeout": fields["timeout"] or "10m", "overlap": fields["overlap"] or "skip", "misfire": fields["misfire"] or "latest", "retry": retry,
    }  # fmt: skip


def changes_of(before: dict[str, Any], fields: dict[str, str]) -> dict[str, Any]:
    """The patch for a stored job. It leaves out what the form left alone: a job holds more than the form shows."""
    whole, shown = body_of(fields), fields_of(before)
    schedule, retry = whole.pop("schedule"), whole.pop("retry")
    changes = {name: value for name, value in whole.items() if value != before[name]}
    for name in ("config", "payload"):
        if name in changes:
            changes[name] = merge_patch_between(before[name], changes[name])
    if _differ(fields, shown, SCHEDULE):
        changes["schedule"] = schedule
    if _differ(fields, shown, ("retry_delays",)) or "none" in (
        before["retry"]["strategy"],
        retry["strategy"],
    ):
        changes["retry"] = retry
    elif retry["max"] != before["retry"]["max"]:
        changes["retry"] = {"max": retry["max"]}
    return changes


def merge_patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7396) that turns one object into the other: null removes a key."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            patch |= {name: merge_patch_between(old, value)} if old != value else {}
        elif name not in before or old != value:
            patch[name] = value
    return patch


def _differ(fields: dict[str, str], shown: dict[str, str], names: tuple[str, ...]) -> bool:
    return any(fields[name].strip() != shown[name] for name in names)


def fields_of(job: dict[str, Any]) -> dict[str, str]:
    """A stored job as the fields of the form."""
    schedule, config = job["schedule"], dict(job["config"])
    url, method = "", "POST"
    if job["type"] == "http" and isinstance(config.get("url"), str):
        url, method = config.pop("url"), config.pop("method", "POST")
    when = {"cron": schedule.get("expr"), "interval": schedule.get("every"), "once": schedule.get("at")}.get(
        schedule["kind"], ""
    )
    retry = job["retry"]
    return BLANK | {
        "name": job["name"], "description": job["description"], "kind": schedule["kind"], "when": when or "",
        "timezone": schedule.get("timezone") or "", "type": job["type"], "config": json.dumps(config, indent=2) if config else "",
        "url": url, "method": method, "payload": json.dumps(job["payload"], indent=2) if job["payload"] else "",
        "tags": ", ".join(job["tags"]), "queue": job["queue"], "timeout": job["timeout"], "overlap": job["overlap"],
        "misfire": job["misfire"], "retry_max": str(retry["max"]), "retry_delays": ", ".join(retry.get("delays") or []),
    }  # fmt: skip


def _json_object(name: str, raw: str) -> dict[str, Any]:
    if not raw.strip():
        return {}
    value = read_json(name, raw)
    if not isinstance(value, dict):
        raise field_refusal(name, "This must be a JSON object: {…}.")
    return value


ROUTES = [
    Route("/jobs/new", new_job),
    Route("/jobs/preview", preview_part),
    Route("/jobs/save", action(save), methods=["POST"]),
    Route("/jobs/{job_id}/edit", edit_job),
    Route("/jobs/{job_id}/save", action(save), methods=["POST"]),
]
