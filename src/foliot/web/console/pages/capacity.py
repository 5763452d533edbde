"""Capacity: warnings that are real, queues, workers, hosts, limits, and for the installation who waits for whom."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.routing import Route

from foliot.web.console.site import Context, Visit, page


@page("capacity.html", "capacity")
async def capacity(visit: Visit) -> Context:
    queues, workers, hosts, limits, shares, leases = await asyncio.gather(
        visit.api.get("/queues"),
        visit.api.get("/workers"),
        visit.api.answer("GET", "/hosts"),
        visit.api.answer("GET", "/limits"),
        visit.api.answer("GET", "/capacity/shares"),
        visit.api.answer("GET", "/leases", params={"overdue": "true"}),
    )
    everyone = sum(each["workers"] for each in queues["items"] if each["name"] == "*")
    named = [each for each in queues["items"] if each["name"] != "*"]
    alive = [each for each in workers["items"] if each["status"] != "lost"]
    return {
        "queues": [each | {"served_by": each["workers"] + everyone} for each in named],
        "warnings": [(each, sentence) for each in named for sentence in each["warnings"] if each["ready"]],
        "workers": workers["items"],
        "seats": {
            "busy": sum(each["running"] for each in alive),
            "all": sum(each["capacity"] for each in alive if each["status"] == "alive"),
        },
        "ready": sum(each["ready"] for each in named),
        "waiting": sum(each["waiting"] for each in named),
        "running": sum(each["running"] for each in named),
        "hosts": hosts.data["items"] if hosts.is_success else [],
        "limits": limits.data["items"] if limits.is_success else [],
        "overdue": leases.data["items"] if leases.is_success else [],
        "shares": _shares(shares.data["items"]) if shares.is_success else None,
    }


def _shares(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Each workspace's part of what runs, and whether others wait while it has much."""
    running = sum(each["running"] for each in items)
    rows = [each | {"part": each["running"] / running if running else 0.0} for each in items]
    waiting = [each for each in rows if each["ready"]]
    largest = max(rows, key=lambda each: each["part"], default=None)
    squeezed = [each for each in waiting if largest and each["workspace"] != largest["workspace"]]
    is_squeeze = bool(squeezed and largest and largest["part"] > 0.5)
    return {
        "rows": rows,
        "largest": largest if is_squeeze else None,
        "squeezed": squeezed if is_squeeze else [],
    }


ROUTES = [Route("/capacity", capacity)]
