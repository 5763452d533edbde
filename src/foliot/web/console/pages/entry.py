"""Sign in, sign out, choose workspace, language and zone; search; live events."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from foliot.services.identity.sign_in import Visitor, open_session_by_email
from foliot.web.console import text
from foliot.web.console.api import ApiRefusal
from foliot.web.console.openid import FLOW_COOKIE, FLOW_PATH, OpenIdSignIn, SignInRefused, read_flow
from foliot.web.console.session import (
    COOKIE,
    HOME,
    LASTS,
    WORKSPACE_COOKIE,
    api_of,
    close_session,
    is_same_origin,
    keep_session,
    now_of,
    open_session,
    safe_next,
    visitor_api,
)
from foliot.web.console.site import NAVIGATION, RANKS, SECURITY_HEADERS, Visit, action, read_form, render

YEAR = 365 * 86_400
MOST_FOUND = 6
ACTIONS = (
    ("New job", "/console/jobs/new", "plus", "editor"),
    ("Freeze jobs for a while", "/console/freezes", "freezes", "operator"),
    ("Failed runs of the last 24 hours", "/console/runs?q=status:failed,timed_out,interrupted+since:24h", "fail", "viewer"),
    ("Test a schedule", "/console/start/schedule", "wait", "viewer"),
)  # of the palette: label, address, icon, least role  # fmt: skip


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


async def join(request: Request) -> Response:
    """An invite: first who invites whom, then, by a button, the person's own key and their session.

    A preview of the link in a chat program must not use it up, so only the form accepts it.
    """
    form = await read_form(request) if request.method == "POST" else {}
    invite = form.get("invite", request.query_params.get("invite", "")).strip()
    visit = Visit(request, visitor_api(request, invite))
    if request.method == "POST" and not is_same_origin(request):
        return _form(request, "This form came from another site.", 403)
    path = "/invites/accept"
    looked = await visit.api.answer("POST", path, params={"dry_run": "true"})
    if not looked.is_success:
        return _form(request, "This invite was used already or has ended. Ask for a new one.", 401)
    context: dict[str, object] = {"me": None, "member": looked.data["key"]["principal"], "invite": invite}
    if request.method != "POST":
        return render(visit, "join.html", {**context, "secret": None})
    made = await visit.api.call("POST", path)
    response = render(visit, "join.html", {**context, "secret": made["secret"]})
    await open_session(request, response, made["secret"])
    return response


async def begin_openid(request: Request) -> Response:
    openid: OpenIdSignIn | None = request.app.state.openid
    if openid is None:
        return RedirectResponse("/console/sign-in", status_code=303, headers=SECURITY_HEADERS)
    try:
        return await openid.begin(request)
    except SignInRefused as refused:
        return _form(request, str(refused), 502)


async def finish_openid(request: Request) -> Response:
    """The provider sends the browser back here. The cookie of the sign-in is used up, whatever it led to."""
    openid: OpenIdSignIn | None = request.app.state.openid
    flow = read_flow(request.cookies.get(FLOW_COOKIE, ""))
    response: Response
    if openid is None:
        response = RedirectResponse("/console/sign-in", status_code=303, headers=SECURITY_HEADERS)
    elif flow is None:
        response = _form(request, "This sign-in was not begun in this browser, or it took too long.", 403)
    else:
        response = await _finish(request, openid, flow)
    response.delete_cookie(FLOW_COOKIE, path=FLOW_PATH)
    return response


async def _finish(request: Request, openid: OpenIdSignIn, flow: dict[str, str]) -> Response:
    try:
        email = await openid.finish(request, flow, now_of(request))
    except SignInRefused as refused:
        return _form(request, str(refused), 403)
    visitor = Visitor(
        request.client.host if request.client else None, request.scope.get("state", {}).get("request_id")
    )
    secret = await open_session_by_email(
        request.app.state.database, openid.provider.workspace, email, LASTS, visitor
    )
    if secret is None:
        return _form(request, "No member has this e-mail address. Ask an administrator to add you.", 403)
    response = RedirectResponse(safe_next(flow["next"]), status_code=303, headers=SECURITY_HEADERS)
    keep_session(request, response, secret)
    return response


def _form(request: Request, problem: str | None, status: int = 200) -> HTMLResponse:
    visit = Visit(request, visitor_api(request))
    openid: OpenIdSignIn | None = request.app.state.openid
    context = {
        "problem": problem,
        "target": safe_next(request.query_params.get("next")),
        "me": None,
        "openid_name": openid.provider.name if openid else None,
    }
    return render(visit, "sign_in.html", context, status)


async def sign_out(visit: Visit) -> Response:
    response = RedirectResponse("/console/sign-in", status_code=303)
    await close_session(visit.request, response)
    return response


async def choose(visit: Visit) -> Response:
    """Remember the workspace, language, zone or theme in a cookie."""
    response = RedirectResponse(safe_next(visit.field("next")), status_code=303)
    workspace, language, zone, theme = (
        visit.field(name) for name in ("workspace", "language", "zone", "theme")
    )
    choices = {
        WORKSPACE_COOKIE: (workspace, re.fullmatch(r"[a-z0-9-]{1,99}", workspace) is not None),
        "foliot_language": (language, language in text.LANGUAGES),
        "foliot_zone": (zone, zone == "job" or text.is_zone(zone)),
        "foliot_theme": (theme, theme in ("system", "light", "dark")),
    }
    for name, (value, is_known) in choices.items():
        if is_known:
            response.set_cookie(
                name, value, max_age=YEAR, path="/console", samesite="lax", httponly=name == WORKSPACE_COOKIE
            )
    return response


async def search(request: Request) -> Response:
    """Jobs, runs, pages and actions for the palette, in groups."""
    visit = Visit(request, api_of(request))
    t, wanted = visit.reader.translate, visit.param("q")[:200]
    me, jobs, run = await asyncio.gather(
        visit.api.me(),
        visit.api.get("/jobs", name=wanted or None, limit=MOST_FOUND),
        _run_named(visit, wanted),
    )
    pages = [
        _found(t(label), f"/console/{name}" if name != "today" else HOME, name)
        for _, items in NAVIGATION
        for _, label, name, least in items
        if RANKS[me["role"] or "viewer"] >= RANKS[least]
    ]
    actions = [
        _found(t(label), href, icon)
        for label, href, icon, least in ACTIONS
        if RANKS[me["role"] or "viewer"] >= RANKS[least]
    ]
    found = [
        _found(
            job["name"], f"/console/jobs/{job['id']}", text.shape_of(job["status"]), job["schedule"]["words"]
        )
        for job in jobs["items"]
    ]
    groups = {
        "Runs": [] if run is None else [run],
        "Jobs": found,
        "Actions": [each for each in actions if _matches(each, wanted)],
        "Pages": [each for each in pages if _matches(each, wanted)],
    }
    if wanted:
        query = quote(wanted)
        groups["Search"] = [
            _found(t("Jobs that match {text}", text=wanted), f"/console/jobs?q={query}", "search"),
            _found(t("Runs that match {text}", text=wanted), f"/console/runs?q={query}", "search"),
        ]
    shown = [{"title": t(title), "items": items} for title, items in groups.items() if items]
    return JSONResponse({"groups": shown}, headers=SECURITY_HEADERS)


def _found(title: str, href: str, icon: str, note: str | None = "") -> dict[str, str]:
    return {"title": title, "href": href, "icon": icon, "note": note or ""}


def _matches(found: dict[str, str], wanted: str) -> bool:
    return all(word in found["title"].lower() for word in wanted.lower().split())


async def _run_named(visit: Visit, wanted: str) -> dict[str, str] | None:
    """The run with this id, or none."""
    if not re.fullmatch(r"[0-9a-f-]{36}", wanted):
        return None
    answer = await visit.api.answer("GET", f"/runs/{wanted}")
    if not answer.is_success:
        return None
    run = answer.data
    title = f"{run['job_name']} #{run['number']}"
    return _found(title, f"/console/runs/{run['id']}", text.shape_of(run["status"]))


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
        wanted = {name: request.query_params.get(name) for name in ("job", "types")}
        await api_of(request).forward("/events", wanted, receive, send, headers)


ROUTES = [
    Route("/sign-in", sign_in, methods=["GET", "POST"]),
    Route("/sign-in/openid", begin_openid),
    Route("/sign-in/openid/callback", finish_openid),
    Route("/join", join, methods=["GET", "POST"]),
    Route("/sign-out", action(sign_out), methods=["POST"]),
    Route("/choose", action(choose), methods=["POST"]),
    Route("/search", search),
    Route("/live", Live()),
]
