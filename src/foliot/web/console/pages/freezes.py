"""Freezes: hold the whole workspace or some tags for a while, with a preview of what is held."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal
from foliot.web.console.site import Context, Visit, action, done, page


@page("freezes.html", "freezes")
async def freeze_list(visit: Visit) -> Context:
    found = await visit.api.get("/freezes")
    wanted = {name: visit.param(name) for name in ("reason", "end_at", "after", "running", "tags")}
    preview, problem = None, None
    if wanted["reason"]:
        try:
            preview = await visit.api.call("POST", "/freezes/preview", body_of(wanted))
        except ApiRefusal as refusal:
            problem = refusal.sentences[0]
    return {"freezes": found["items"], "wanted": wanted, "preview": preview, "problem": problem}


def body_of(wanted: dict[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "reason": wanted["reason"],
        "after": wanted["after"] or "latest",
        "running": wanted["running"] or "drain",
    }
    if wanted["end_at"]:
        body["end_at"] = wanted["end_at"]
    tags = [tag.strip() for tag in wanted["tags"].split(",") if tag.strip()]
    if tags:
        body["scope"] = {"tags": tags}
    return body


async def create(visit: Visit) -> Response:
    wanted = {name: visit.field(name) for name in ("reason", "end_at", "after", "running", "tags")}
    await visit.api.call("POST", "/freezes", body_of(wanted))
    return done("/console/freezes", "freeze-created")


async def lift(visit: Visit) -> Response:
    await visit.api.call("POST", f"/freezes/{visit.path['freeze_id']}/lift", {})
    return done("/console/freezes", "freeze-lifted")


ROUTES = [
    Route("/freezes", freeze_list),
    Route("/freezes/create", action(create), methods=["POST"]),
    Route("/freezes/{freeze_id}/lift", action(lift), methods=["POST"]),
]
