"""The agenda for calendar programs: a file, and the address by which they read it. It holds a key that opens nothing else and can be revoked."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from foliot.web.console.pages.form_routes import form_route, items_of
from foliot.web.console.session import api_of
from foliot.web.console.site import Context, Visit, action, page, render, shell_of

HERE = "/console/agenda/feed"
SCOPE = "agenda"


@page("agenda_feed.html", "agenda")
async def feed(visit: Visit) -> Context:
    return await _feeds(visit)


async def _feeds(visit: Visit) -> Context:
    """The addresses of this person. What an address is shows once, when it is made; afterwards only its key's name is known."""
    me = await visit.api.me()
    found = await items_of(visit, "/keys", principal=me["principal"]["id"], revoked="false")
    return {
        "feeds": [each for each in found or () if SCOPE in each["scopes"]],
        "made": None,
        "tag": visit.param("tag"),
        "queue": visit.param("queue"),
    }


async def make_feed(visit: Visit) -> Response:
    """Show the address once, in the answer itself."""
    name = visit.field("name") or visit.reader.translate("Calendar")
    made = await visit.api.call("POST", "/keys", {"name": name, "scopes": [SCOPE]})
    shell, found = await shell_of(visit), await _feeds(visit)
    given = {"tag": visit.field("tag"), "queue": visit.field("queue")}
    if shell["me"]["is_system"]:  # its key belongs to no workspace
        given["workspace"] = shell["me"]["workspace"]["slug"]
    address = feed_address(visit, made["secret"], {name: value for name, value in given.items() if value})
    context = {**shell, **found, "active": "agenda", "made": {"name": name, "address": address}}
    return render(visit, "agenda_feed.html", context)


def feed_address(visit: Visit, key: str, params: dict[str, str]) -> str:
    state: Any = visit.request.app.state.api.state
    base = str(state.public_url or f"{visit.request.base_url}".removesuffix("console/")).rstrip("/")
    return f"{base}/feeds/agenda/{key}.ics{'?' if params else ''}{urlencode(params)}"


class CalendarFile:
    """The agenda as a file, handed on from the API."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        params = {name: request.query_params.get(name) for name in ("tag", "queue")}
        await api_of(request).forward("/agenda.ics", params, receive, send, {"accept": "text/calendar"})


ROUTES = [
    Route("/agenda.ics", CalendarFile()),
    Route("/agenda/feed", feed),
    Route("/agenda/feed", action(make_feed), methods=["POST"]),
    form_route("/agenda/feed/{key_id}/revoke", "POST /keys/{key_id}/revoke", HERE, "feed-revoked"),
]
