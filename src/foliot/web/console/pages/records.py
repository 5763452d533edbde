"""Audit: who changed what, when, from where."""

from __future__ import annotations

from starlette.routing import Route

from foliot.web.console.site import Context, Visit, page


@page("audit.html", "audit")
async def audit(visit: Visit) -> Context:
    action = visit.param("action")
    found = await visit.api.get(
        "/audit", action=action or None, cursor=visit.param("cursor") or None, limit=50
    )
    return {"entries": found["items"], "next_cursor": found["next_cursor"], "action_filter": action}


ROUTES = [Route("/audit", audit)]
