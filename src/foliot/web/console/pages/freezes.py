"""Freezes: hold the workspace or a part of it for a while, with a preview of what is held; lift; history."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, read_number
from foliot.web.console.pages.form_routes import LONGEST_LIST, instant_of, member_names, words
from foliot.web.console.pages.jobs import names_of
from foliot.web.console.site import Context, Visit, action, done, page
from foliot.web.console.text import parse

NAMED_JOBS = 3  # of a freeze in the list
FIELDS = ("reason", "scope", "tags", "queues", "jobs", "start_at", "end_at", "after", "per_minute", "running")


@page("freezes.html", "freezes")
async def freeze_list(visit: Visit) -> Context:
    """Freezes in force and to come, and the preview of the one in the address."""
    wanted = {name: visit.param(name) for name in FIELDS}
    found, past, names, previewed = await asyncio.gather(
        visit.api.get("/freezes", limit=50),
        visit.api.get("/freezes", ended="true", cursor=visit.param("cursor") or None, limit=25),
        member_names(visit),
        _preview(visit, wanted),
    )
    shown = [
        each for frozen in (*found["items"], *past["items"]) for each in frozen["scope"]["jobs"][:NAMED_JOBS]
    ]
    return {
        "freezes": found["items"],
        "named_jobs": NAMED_JOBS,
        "job_names": await names_of(visit, list(dict.fromkeys(shown))[:LONGEST_LIST]),
        "past": [each for each in past["items"] if each["status"] == "over"],
        "next_cursor": past["next_cursor"],
        "names": names,
        "wanted": wanted,
        **previewed,
    }


async def _preview(visit: Visit, wanted: dict[str, str]) -> Context:
    none: Context = {"preview": None, "body": None, "body_text": "", "command": "", "problems": []}
    if not wanted["reason"]:
        return none
    try:
        body = body_of(visit, wanted)
        preview = await visit.api.call("POST", "/freezes/preview", body)
    except ApiRefusal as refusal:
        return {**none, "problems": refusal.sentences}
    return {**none, "preview": preview, "body": body, "body_text": repr(body), "command": command_of(body)}


def body_of(visit: Visit, wanted: dict[str, str]) -> dict[str, Any]:
    """The body that the form describes."""
    body: dict[str, Any] = {
        "reason": wanted["reason"],
        "after": wanted["after"] or "latest",
        "running": wanted["running"] or "drain",
    }
    for name in ("start_at", "end_at"):
        if at := instant_of(visit, name, wanted[name]):
            body[name] = at
    if body["after"] == "all" and wanted["per_minute"]:
        body["per_minute"] = read_number("per_minute", wanted["per_minute"])
    scope = {name: words(wanted[name]) for name in ("tags", "queues", "jobs") if words(wanted[name])}
    body["scope"] = scope if scope and wanted["scope"] != "everything" else {"everything": True}
    return body


def command_of(body: dict[str, Any]) -> str:
    """The same freeze as a command."""
    scope = body["scope"]
    parts = ["foliot freeze on", "--reason", shlex.quote(body["reason"])]
    parts += ["--all"] if scope.get("everything") else []
    for flag in ("job", "tag", "queue"):
        parts += [f"--{flag} {shlex.quote(each)}" for each in scope.get(f"{flag}s", ())]
    for flag, name in (("from", "start_at"), ("until", "end_at"), ("after", "after"), ("running", "running")):
        parts += [f"--{flag} {body[name]}"] if name in body else []
    return " ".join([*parts, *([f"--per-minute {body['per_minute']}"] if "per_minute" in body else [])])


async def create(visit: Visit) -> Response:
    made = await visit.api.call(
        "POST", "/freezes", body_of(visit, {name: visit.field(name) for name in FIELDS})
    )
    return done("/console/freezes", "freeze-created", made["id"])


async def lift(visit: Visit) -> Response:
    freeze_id = visit.path["freeze_id"]
    found = await visit.api.get(f"/freezes/{freeze_id}")
    await visit.api.call("POST", f"/freezes/{freeze_id}/lift")
    return done("/console/freezes", "freeze-lifted", freeze_id, [found["start_at"], found["end_at"] or ""])


async def freeze_again(visit: Visit) -> Response:
    """Take a lift back: the same freeze once more, until the end it had. What started meanwhile is not undone."""
    found = await visit.api.get(f"/freezes/{visit.path['freeze_id']}")
    body = {name: found[name] for name in ("reason", "scope", "after", "per_minute", "running")}
    start, end = (instant_of(visit, name, visit.field(name)) for name in ("start_at", "end_at"))
    body |= {"end_at": end, "start_at": start if start and parse(start) > visit.reader.now else None}
    made = await visit.api.call("POST", "/freezes", body)
    return done("/console/freezes", "freeze-created", made["id"])


ROUTES = [
    Route("/freezes", freeze_list),
    Route("/freezes/create", action(create), methods=["POST"]),
    Route("/freezes/{freeze_id}/again", action(freeze_again), methods=["POST"]),
    Route("/freezes/{freeze_id}/lift", action(lift), methods=["POST"]),
]
