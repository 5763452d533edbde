"""Incidents: jobs in trouble, grouped by error; one incident with its timeline, runs and messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import Params, read_number
from foliot.web.console.pages.form_routes import form_route, instant_of, items_of, member_names
from foliot.web.console.site import Context, Visit, action, done, page
from foliot.web.console.text import STATUS_SHAPES

STATES = ("open", "acknowledged", "snoozed", "muted", "closed")
EVENTS = {
    "run_failed": "A run failed",
    "retries_exhausted": "All retries failed",
    "run_succeeded": "A run succeeded",
    "run_skipped": "A run was skipped",
    "missed": "Planned times were missed",
    "late": "A run has not started",
    "slow": "A run takes longer than usual",
    "stuck": "A run is stuck",
    "no_worker": "No worker takes its runs",
    "job_paused": "The job was paused",
    "job_auto_paused": "The job was paused after failures",
    "job_resumed": "The job was resumed",
    "job_changed": "The job was changed",
    "recovered": "It works again",
    "expiring": "A job or a key ends soon",
    "zone_data_changed": "New zone data moved the next run",
    "channel_disabled": "A channel was disabled",
    "budget_warning": "A budget is nearly used up",
    "budget_exceeded": "A budget is used up",
    "test": "Test message",
    "digest": "Digest",
}
SNOOZES = ((1, "for one hour"), (4, "for 4 hours"), (24, "for one day"), (168, "for one week"))
MOST_RUNS = 15


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: str
    shape: str
    text: str
    note: str = ""
    status: str = ""
    href: str = ""
    number: int | None = None


@page("incidents.html", "incidents")
async def incident_list(visit: Visit) -> Context:
    state = visit.param("state")
    shown = state if state in STATES else ""
    found = await visit.api.get(
        "/incidents",
        state="closed" if shown == "closed" else "open",
        job_id=visit.param("job") or None,
        cursor=visit.param("cursor") or None,
        limit=200,
    )
    counts = {name: sum(each["state"] == name for each in found["items"]) for name in STATES}
    items = [each for each in found["items"] if shown in ("", each["state"])]
    return {
        "groups": grouped(items),
        "counts": counts,
        "state": shown,
        "job": visit.param("job"),
        "next_cursor": found["next_cursor"],
        "events": EVENTS,
    }


def grouped(incidents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Incidents with the same error together; the group of the newest failure first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in incidents:
        groups.setdefault(each["fingerprint"], []).append(each)
    made = [
        {
            "error": members[0]["error"],
            "event": members[0]["event"],
            "items": members,
            "failures": sum(each["failures"] + each["missed"] for each in members),
            "last_at": max(each["last_at"] for each in members),
        }
        for members in groups.values()
    ]
    return sorted(made, key=lambda group: str(group["last_at"]), reverse=True)


@page("incident.html", "incidents")
async def incident(visit: Visit) -> Context:
    incident_id = visit.path["incident_id"]
    found = await visit.api.get(f"/incidents/{incident_id}")
    sent, runs, alike, names = await asyncio.gather(
        items_of(visit, "/deliveries", incident_id=incident_id, limit=50),
        _runs(visit, found),
        items_of(visit, "/incidents", state="open"),
        member_names(visit),
    )
    return {
        "incident": found,
        "timeline": timeline(found, runs, sent or [], names),
        "runs": runs,
        "deliveries": sent or [],
        "alike": [
            each
            for each in alike or ()
            if each["fingerprint"] == found["fingerprint"] and each["id"] != found["id"]
        ],
        "names": names,
        "events": EVENTS,
        "snoozes": SNOOZES,
        "zone_of_job": None,
    }


async def _runs(visit: Visit, found: dict[str, Any]) -> list[dict[str, Any]]:
    """The newest runs of the job since the first failure. A job or run that was purged has none."""
    if found["job_id"] is None:
        return []
    since = found["opened_at"]
    if found["first_run_id"]:
        first = await visit.api.answer("GET", f"/runs/{found['first_run_id']}")
        since = (first.data.get("planned_for") if first.is_success else None) or since
    params: Params = {"q": f"since:{since}", "limit": MOST_RUNS}
    answer = await visit.api.answer("GET", f"/jobs/{found['job_id']}/runs", params=params)
    return list(answer.data["items"]) if answer.is_success else []


def timeline(
    found: dict[str, Any],
    runs: Iterable[dict[str, Any]],
    sent: Iterable[dict[str, Any]],
    names: dict[str, str],
) -> list[TimelineEntry]:
    """What happened, oldest first: failures, what people did, what was sent."""
    entries = [TimelineEntry(found["opened_at"], "fail", "Opened", EVENTS.get(found["event"], ""))]
    entries += [
        TimelineEntry(
            run["finished_at"],
            STATUS_SHAPES.get(run["status"], "wait"),
            "Run",
            (run["error"] or {}).get("message", ""),
            run["status"],
            f"/console/runs/{run['id']}",
            run["number"],
        )
        for run in runs
        if run["finished_at"]
    ]
    entries += [
        TimelineEntry(
            each["created_at"],
            STATUS_SHAPES.get(each["state"], "wait"),
            "Message",
            f"{each['channel_name']}: {each['title']}",
            each["state"],
        )
        for each in sent
    ]
    for kind, text in (("acknowledged", "Acknowledged"), ("muted", "Muted")):
        if found[f"{kind}_at"]:
            by = found[f"{kind}_by"]
            entries.append(TimelineEntry(found[f"{kind}_at"], "stop", text, names.get(by, by)))
    if found["closed_at"]:
        entries.append(TimelineEntry(found["closed_at"], "ok", "Closed"))
    return sorted(entries, key=lambda entry: entry.at)


async def snooze(visit: Visit) -> Response:
    """Until a time, or for some hours from now."""
    incident_id, until = visit.path["incident_id"], visit.field("until")
    if hours := visit.field("hours"):
        until = (visit.reader.now + timedelta(hours=min(read_number("hours", hours), 8_760))).isoformat()
    body = {"until": instant_of(visit, "until", until)}
    await visit.api.call("POST", f"/incidents/{incident_id}/snooze", body)
    return done(f"/console/incidents/{incident_id}", "incident-snoozed")


async def set_note(visit: Visit) -> Response:
    incident_id = visit.path["incident_id"]
    await visit.api.call("PUT", f"/incidents/{incident_id}/note", {"note": visit.field("note")})
    return done(f"/console/incidents/{incident_id}", "incident-noted")


def _verb(verb: str, notice: str) -> Route:
    address = f"/incidents/{{incident_id}}/{verb}"
    return form_route(address, f"POST {address}", "/console/incidents/{incident_id}", notice)


ROUTES = [
    Route("/incidents", incident_list),
    Route("/incidents/{incident_id}", incident),
    Route("/incidents/{incident_id}/snooze", action(snooze), methods=["POST"]),
    Route("/incidents/{incident_id}/note", action(set_note), methods=["POST"]),
    _verb("acknowledge", "incident-acknowledged"),
    _verb("mute", "incident-muted"),
    _verb("unmute", "incident-unmuted"),
    _verb("close", "incident-closed"),
]
