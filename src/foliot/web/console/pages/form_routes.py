"""Forms that are one call of the API: the route, its body, and where to go afterwards."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, field_refusal
from foliot.web.console.site import Visit, action, done
from foliot.web.console.text import zone_named

LONGEST_LIST = 200  # the longest page of the API


def form_route(path: str, call: str, target: str, notice: str, *fields: str) -> Route:
    """A form that sends `fields` by `call`, such as "POST /incidents/{id}/mute". Empty fields are left out."""
    method, _, address = call.partition(" ")

    async def perform(visit: Visit) -> Response:
        body = {name: value for name in fields if (value := visit.field(name))}
        await visit.api.call(method, address.format(**visit.path), body if fields else None)
        return done(target.format(**visit.path), notice, next(iter(visit.path.values()), ""))

    return Route(path, action(perform), methods=["POST"])


async def items_of(visit: Visit, path: str, **params: str | int | None) -> list[dict[str, Any]] | None:
    """The first page of a list; None where the caller's role may not read it. `limit=None`: the list has no pages."""
    answer = await visit.api.answer("GET", path, params={"limit": LONGEST_LIST, **params})
    if answer.status in (401, 403):
        return None
    if not answer.is_success:
        raise ApiRefusal(answer.status, answer.data if isinstance(answer.data, dict) else {})
    found: list[dict[str, Any]] = answer.data["items"]
    return found


async def member_names(visit: Visit) -> dict[str, str]:
    """Names of members by id, for fields that hold ids."""
    return {each["id"]: each["name"] for each in await items_of(visit, "/members") or ()}


def words(text: str) -> list[str]:
    """The parts of a field that takes several values, by comma or line."""
    return [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]


def instant_of(visit: Visit, name: str, raw: str) -> str | None:
    """An instant as the API takes it. A time without a zone, as browsers' pickers give it, is in the reader's zone, else UTC."""
    if not raw:
        return None
    try:
        at = datetime.fromisoformat(raw)
    except ValueError:
        raise field_refusal(name, "Write a time such as 2026-11-17T06:00 or 2026-11-17T06:00:00Z.") from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=zone_of(visit))
    return at.isoformat()


def zone_of(visit: Visit) -> ZoneInfo:
    """The zone that the reader chose for times without one."""
    return zone_named(visit.reader.zone or "UTC")
