"""Rooms: the conversations of people and agents with their jobs, and the webhooks that carry them on."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, field_refusal
from foliot.web.console.pages.form_routes import form_route, items_of, member_names
from foliot.web.console.site import Context, Visit, action, done, page

MESSAGES = 50


@page("rooms.html", "rooms")
async def room_list(visit: Visit) -> Context:
    found, members = await asyncio.gather(
        visit.api.get("/rooms", cursor=visit.param("cursor") or None, limit=50), items_of(visit, "/members")
    )
    return {
        "rooms": found["items"],
        "next_cursor": found["next_cursor"],
        "agents": [each for each in members or () if each["kind"] == "agent" and each["active"]],
        "names": {each["id"]: each["name"] for each in members or ()},
    }


@page("room.html", "rooms")
async def room(visit: Visit) -> Context:
    """The newest messages; `before` shows earlier ones."""
    room_id = visit.path["room_id"]
    found = await visit.api.get(f"/rooms/{room_id}")
    raw = visit.param("before")
    end = int(raw) if raw.isascii() and raw.isdecimal() and len(raw) <= 18 else found["last_seq"] + 1
    after = max(min(end, found["last_seq"] + 1) - MESSAGES - 1, 0)
    read, names, sent = await asyncio.gather(
        visit.api.get(f"/rooms/{room_id}/messages", cursor=str(after), limit=MESSAGES),
        member_names(visit),
        items_of(visit, f"/rooms/{room_id}/deliveries", limit=20) if found["webhook"] else _none(),
    )
    messages = [each for each in read["items"] if each["seq"] < end]
    jobs = await _job_names(visit, {each["job_id"] for each in messages if each["job_id"]})
    return {
        "room": found,
        "messages": messages,
        "jobs": jobs,
        "names": names,
        "earlier": messages[0]["seq"] if messages and messages[0]["seq"] > 1 and after else None,
        "is_newest": end > found["last_seq"],
        "deliveries": sent or [],
    }


async def _none() -> list[dict[str, Any]]:
    return []


async def _job_names(visit: Visit, ids: set[str]) -> dict[str, str]:
    async def one(job_id: str) -> tuple[str, str]:
        answer = await visit.api.answer("GET", f"/jobs/{job_id}")
        return job_id, answer.data["name"] if answer.is_success else job_id[-12:]

    return dict(await asyncio.gather(*(one(each) for each in sorted(ids)[:20])))


async def create(visit: Visit) -> Response:
    body: dict[str, Any] = {"name": visit.field("name")}
    if key := visit.field("key"):
        body["key"] = key
    body["agents"] = [name[6:] for name in visit.form or () if name.startswith("agent-")]
    made = await visit.api.call("POST", "/rooms", body)
    return done(f"/console/rooms/{made['id']}", "room-created")


async def send(visit: Visit) -> Response:
    room_id = visit.path["room_id"]
    await visit.api.call("POST", f"/rooms/{room_id}/messages", {"text": visit.field("text")})
    return done(f"/console/rooms/{room_id}#end", "message-sent")


async def set_webhook(visit: Visit) -> Response:
    """Set or remove the webhook: an empty address removes it."""
    room_id, url, secret = visit.path["room_id"], visit.field("url"), visit.field("secret")
    hook = {"url": url, "secret": {"secret": secret} if secret else None} if url else None
    await visit.api.call("PATCH", f"/rooms/{room_id}", {"webhook": hook})
    return done(f"/console/rooms/{room_id}", "room-saved")


async def redeliver(visit: Visit) -> Response:
    room_id = visit.path["room_id"]
    await visit.api.call("POST", f"/rooms/{room_id}/redeliver", {})
    return done(f"/console/rooms/{room_id}", "delivery-replayed")


async def delete(visit: Visit) -> Response:
    room_id = visit.path["room_id"]
    found = await visit.api.get(f"/rooms/{room_id}")
    if visit.field("confirm") != found["name"]:
        refused: ApiRefusal = field_refusal("confirm", "Write the name of the room to delete it.")
        raise refused
    await visit.api.call("DELETE", f"/rooms/{room_id}")
    return done("/console/rooms", "room-deleted")


ROUTES = [
    Route("/rooms", room_list),
    Route("/rooms/create", action(create), methods=["POST"]),
    Route("/rooms/{room_id}", room),
    Route("/rooms/{room_id}/send", action(send), methods=["POST"]),
    Route("/rooms/{room_id}/webhook", action(set_webhook), methods=["POST"]),
    Route("/rooms/{room_id}/redeliver", action(redeliver), methods=["POST"]),
    Route("/rooms/{room_id}/delete", action(delete), methods=["POST"]),
    form_route(
        "/rooms/{room_id}/rename", "PATCH /rooms/{room_id}", "/console/rooms/{room_id}", "room-saved", "name"
    ),
]
