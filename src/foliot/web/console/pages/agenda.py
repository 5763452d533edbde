"""Agenda: everything that is planned in the next hours, in the order in which it starts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from starlette.routing import Route

from foliot.web.console.site import Context, Visit, page
from foliot.web.console.text import parse, zone_named

MOST_HOURS = 24 * 31
SPANS = (6, 12, 24, 72, 168)


@page("agenda.html", "agenda")
async def agenda(visit: Visit) -> Context:
    asked = visit.param("hours")
    hours = int(asked) if re.fullmatch(r"[1-9][0-9]{0,2}", asked) and int(asked) <= MOST_HOURS else 24
    begin = visit.reader.now
    found = await visit.api.get(
        "/agenda",
        **{"from": begin.isoformat(), "to": (begin + timedelta(hours=hours)).isoformat()},
        tag=visit.param("tag") or None,
    )
    days: dict[str, list[dict[str, Any]]] = {}
    zone = zone_named(visit.reader.zone or "UTC")
    for item in found["items"]:
        local = parse(item["starts_at"]).astimezone(zone)
        day = f"{visit.reader.translate(f'{local:%a}')} {local.day} {visit.reader.translate(f'{local:%b}')}"
        days.setdefault(day, []).append(item)
    return {"agenda": found, "by_day": days, "hours": hours, "spans": SPANS, "tag": visit.param("tag")}


ROUTES = [Route("/agenda", agenda)]
