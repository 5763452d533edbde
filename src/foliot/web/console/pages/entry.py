"""Sign in, sign out, choose workspace, language and zone; search; live events."""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from foliot.web.console import text
from foliot.web.console.api import ApiRefusal
from foliot.web.console.session import (
    COOKIE,
    HOME,
    WORKSPACE_COOKIE,
    api_of,
    close_session,
    is_same_origin,
    open_session,
    safe_next,
    visitor_api,
)
from foliot.web.console.site import SECURITY_HEADERS, Visit, action, read_form, render

YEAR = 365 * 86_400


async def sign_in(request: Request) -> Response:
    """The form; and the one-time link that `foliot serve` prints."""
    if request.method == "HEAD":  # a link preview must not use up the link
        return _form(request, None)
    if link := request.query_params.get("link"):
        key = request.app.state.links.redeem(link)
        if key is None:
            return _form(
                request, "This link was used already or is not from this server. Sign in with a key.", 403
            )
        return await _enter(request, key, HOME)
    if request.method == "GET":
        return _form(request, None)
    form = await read_form(request)
    if not is_same_origin(request):
        return _form(request, "This form came from another site.", 403)
    key = form.get("key", "").strip()
    return await _enter(request, key, safe_next(form.get("next")))


async def _enter(request: Request, key: str, target: str) -> Response:
    response = RedirectResponse(target, status_code=303, headers=SECURITY_HEADERS)
    try:
        await open_session(request, response, key)
    except ApiRefusal as refusal:
        is_wrong = refusal.status == HTTPStatus.UNAUTHORIZED
        problem = "This key is not valid: unknown, revoked or expired." if is_wrong else refusal.sentences[0]
        return _form(request, problem, refusal.status)
    return response


def _form(request: Request, problem: str | None, status: int = 200) -> HTMLResponse:
    visit = Visit(request, visitor_api(request))
    target = safe_next(request.query_params.get("next"))
    return render(visit, "sign_in.html", {"problem": problem, "target": target, "me": None}, status)


async def sign_out(visit: Visit) -> Response:
    response = RedirectResponse("/console/sign-in", status_code=303)
    await close_session(visit.request, response)
    return response


async def choose(visit: Visit) -> Response:
    """Remember the workspace, language or zone in a cookie."""
    response = RedirectResponse(safe_next(visit.field("next")), status_code=303)
    workspace, language, zone = (visit.field(name) for name in ("workspace", "language", "zone"))
    choices = {
        WORKSPACE_COOKIE: (workspace, re.fullmatch(r"[a-z0-9-]{1,99}", workspace) is not None),
        "foliot_language": (language, language in text.LANGUAGES),
        "foliot_zone": (zone, zone == "job" or text.is_zone(zone)),
    }
    for name, (value, is_known) in choices.items():
        if is_known:
            response.set_cookie(
                name, value, max_age=YEAR, path="/console", samesite="lax", httponly=name == WORKSPACE_COOKIE
            )
    return response


async def search(request: Request) -> Response:
    """Jobs for the palette: name, sentence and address."""
    visit = Visit(request, api_of(request))
    wanted = visit.param("q")[:200]
    found = await visit.api.get("/jobs", name=wanted or None, limit=8)
    items = [
        {
            "title": job["name"],
            "note": job["schedule"]["words"],
            "href": f"/console/jobs/{job['id']}",
            "status": text.STATUS_SHAPES.get(job["status"]),
        }
        for job in found["items"]
    ]
    return JSONResponse({"items": items}, headers=SECURITY_HEADERS)


class Live:
    """Events of the workspace as hints: the browser reads the page again when something happened."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if not request.cookies.get(COOKIE):
            await Response(status_code=401)(scope, receive, send)
            return
        headers = {"accept": "text/event-stream"}
        if last := request.headers.get("last-event-id"):
            headers["last-event-id"] = last
        await api_of(request).forward("/events", {}, receive, send, headers)


ROUTES = [
    Route("/sign-in", sign_in, methods=["GET", "POST"]),
    Route("/sign-out", action(sign_out), methods=["POST"]),
    Route("/choose", action(choose), methods=["POST"]),
    Route("/search", search),
    Route("/live", Live()),
]
