"""Capacity: queues, workers and hosts, and the limits on runs at once."""

from __future__ import annotations

import asyncio

from starlette.routing import Route

from foliot.web.console.site import Context, Visit, page


@page("capacity.html", "capacity")
async def capacity(visit: Visit) -> Context:
    queues, workers, hosts, limits = await asyncio.gather(
        visit.api.get("/queues"),
        visit.api.get("/workers"),
        visit.api.answer("GET", "/hosts"),
        visit.api.answer("GET", "/limits"),
    )
    return {
        "queues": queues["items"],
        "workers": workers["items"],
        "hosts": hosts.data["items"] if hosts.is_success else [],
        "limits": limits.data["items"] if limits.is_success else [],
    }


ROUTES = [Route("/capacity", capacity)]
