"""Settings: members, keys, secrets by name, calendars, limits."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.site import Context, Visit, action, done, page, render, shell_of


@page("settings.html", "settings")
async def settings(visit: Visit) -> Context:
    return await _gather(visit)


async def _gather(visit: Visit) -> Context:
    names = ("members", "keys", "secrets", "calendars")
    answers = await asyncio.gather(*(visit.api.answer("GET", f"/{name}") for name in names))
    found = {
        name: answer.data["items"] if answer.is_success else None
        for name, answer in zip(names, answers, strict=True)
    }
    return {**found, "made_key": None}


async def create_key(visit: Visit) -> Response:
    """Show the new key once, in the answer itself; it is stored nowhere else."""
    body: dict[str, Any] = {"name": visit.field("name") or "Console"}
    if scope := visit.field("scope"):
        body["scopes"] = [scope]
    made = await visit.api.call("POST", "/keys", body)
    found, shell = await asyncio.gather(_gather(visit), shell_of(visit))
    return render(visit, "settings.html", {**shell, "active": "settings", **found, "made_key": made})


async def revoke_key(visit: Visit) -> Response:
    await visit.api.call("POST", f"/keys/{visit.path['key_id']}/revoke")
    return done("/console/settings", "key-revoked")


ROUTES = [
    Route("/settings", settings),
    Route("/settings/keys", action(create_key), methods=["POST"]),
    Route("/settings/keys/{key_id}/revoke", action(revoke_key), methods=["POST"]),
]
