"""Settings of webhooks: addresses of jobs that other programs call; and where channels and rooms post."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, field_refusal
from foliot.web.console.pages.form_routes import form_route, items_of
from foliot.web.console.pages.job_form import is_id
from foliot.web.console.pages.settings import AT, render_section, section
from foliot.web.console.site import Context, Visit, action, done
from foliot.web.console.text import filter_value

LIST, ONE = f"{AT}/webhooks", "/webhooks/{webhook_id}"


@section("webhooks")
async def webhooks(visit: Visit) -> Context:
    return await _webhooks(visit, {"job": visit.param("job")})


async def _webhooks(visit: Visit, typed: dict[str, str], problems: list[str] | None = None) -> Context:
    incoming, rooms, channels, secrets = await asyncio.gather(
        items_of(visit, "/webhooks"),
        items_of(visit, "/rooms"),
        items_of(visit, "/channels"),
        items_of(visit, "/secrets"),
    )
    return {
        "incoming": incoming,
        "rooms": [each for each in rooms or () if each["webhook"]],
        "channels": [each for each in channels or () if each["config"]["kind"] == "webhook"],
        "secret_names": [each["name"] for each in secrets or ()],
        "typed": {"name": "", "job": "", "secret": "", **typed},
        "problems": problems or [],
    }


async def create(visit: Visit) -> Response:
    """Give a job an address. A job of the type check_in takes check-ins; others run on signed requests."""
    typed = {name: visit.field(name) for name in ("name", "job", "secret")}
    try:
        job = await _job_named(visit, typed["job"])
        is_check_in = job["type"] == "check_in"
        body: dict[str, Any] = {
            "name": typed["name"] or job["name"][:100],
            "kind": "check_in" if is_check_in else "trigger",
            "job_id": job["id"],
        }
        if typed["secret"] and not is_check_in:
            body["secret"] = {"secret": typed["secret"]}
        await visit.api.call("POST", "/webhooks", body)
    except ApiRefusal as refusal:
        return await _again(visit, typed, refusal)
    return done(LIST, "webhook-created")


async def change(visit: Visit) -> Response:
    webhook_id = visit.path["webhook_id"]
    known = await visit.api.get(f"/webhooks/{webhook_id}")
    body: dict[str, Any] = {
        "name": visit.field("name"),
        "kind": known["kind"],
        "job_id": known["job_id"],
        "enabled": bool(visit.field("enabled")),
    }
    for name in ("secret", "old_secret"):
        if value := visit.field(name):
            body[name] = {"secret": value}
    try:
        await visit.api.call("PUT", f"/webhooks/{webhook_id}", body)
    except ApiRefusal as refusal:
        return await _again(visit, {}, refusal)
    return done(LIST, "webhook-saved")


async def _again(visit: Visit, typed: dict[str, str], refusal: ApiRefusal) -> Response:
    found = await _webhooks(visit, typed, refusal.sentences)
    return await render_section(visit, "webhooks", "settings_webhooks.html", found, refusal.status)


async def _job_named(visit: Visit, name: str) -> dict[str, Any]:
    """The job with this id, or the only one with this name."""
    if is_id(name):
        found: dict[str, Any] = await visit.api.get(f"/jobs/{name}")
        return found
    listed = await visit.api.get("/jobs", q=f"name:{filter_value(name)}", limit=20) if name else {"items": []}
    same = [each for each in listed["items"] if each["name"] == name]
    if len(same) != 1:
        problem = "Several jobs have this name: write the id." if same else "There is no job of this name."
        raise field_refusal("job", problem)
    return dict(same[0])


ROUTES = [
    Route("/settings/webhooks", webhooks),
    Route("/settings/webhooks/create", action(create), methods=["POST"]),
    Route(f"/settings{ONE}", action(change), methods=["POST"]),
    form_route(f"/settings{ONE}/rotate", f"POST {ONE}/rotate", LIST, "webhook-rotated"),
    form_route(f"/settings{ONE}/delete", f"DELETE {ONE}", LIST, "webhook-deleted"),
]
