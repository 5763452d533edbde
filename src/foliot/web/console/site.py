"""The console as an ASGI application: routes, the shell around each page, forms, headers."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import shlex
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.domain.access import name_person
from foliot.services import Database
from foliot.web.api.events import KINDS
from foliot.web.console import charts, text
from foliot.web.console.api import Api, ApiRefusal, Params
from foliot.web.console.forms import multipart_fields
from foliot.web.console.notices import NOTICES, UNDO, UNDO_FIELDS
from foliot.web.console.openid import OpenIdSignIn
from foliot.web.console.session import (
    HOME,
    WORKSPACE_COOKIE,
    NotSignedIn,
    SignInLinks,
    api_of,
    csrf_token,
    has_csrf_token,
    is_same_origin,
    now_of,
    visitor_api,
)

log = logging.getLogger(__name__)
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
MOST_FORM_BYTES = 600_000
MOST_FIELDS = 100
FLASH = re.compile(r"(?P<notice>[a-z-]+)(~(?P<id>[\w.:-]{0,100})~(?P<values>[\w-]{0,2000}))?", re.ASCII)
NAVIGATION = (
    (None, (
        ("/console/", "Today", "today", "viewer"),
        ("/console/jobs", "Jobs", "jobs", "viewer"),
        ("/console/runs", "Runs", "runs", "viewer"),
        ("/console/agenda", "Agenda", "agenda", "viewer"),
    )),
    ("Operate", (
        ("/console/incidents", "Incidents", "incidents", "viewer"),
        ("/console/capacity", "Capacity", "capacity", "viewer"),
        ("/console/freezes", "Freezes", "freezes", "viewer"),
        ("/console/calendars", "Calendars", "calendars", "viewer"),
        ("/console/rooms", "Rooms", "rooms", "viewer"),
    )),
    ("Workspace", (
        ("/console/start", "Start", "start", "viewer"),
        ("/console/audit", "Audit", "audit", "admin"),
        ("/console/settings", "Settings", "settings", "viewer"),
    )),
)  # title; address, label, icon and least role of each page. The first group is the bar of small screens.  # fmt: skip
LIVE_KINDS = " ".join(sorted(KINDS))
RANKS = {"viewer": 0, "operator": 1, "editor": 2, "admin": 3}
Context = dict[str, Any]
PageFunction = Callable[["Visit"], Awaitable[Context | Response]]


class Visit:
    """One request of a signed-in person: the API as they see it, their form, their language and zone."""

    def __init__(self, request: Request, api: Api, form: dict[str, str] | None = None) -> None:
        self.request = request
        self.api = api
        self.form = form
        self.language = text.choose_language(
            request.headers.get("accept-language", ""), request.cookies.get("foliot_language")
        )
        chosen = request.cookies.get("foliot_zone", "")
        zone = chosen if text.is_zone(chosen) else None
        self.reader = text.Reader(now_of(request), text.translator(self.language), zone)

    @property
    def path(self) -> dict[str, str]:
        return dict(self.request.path_params)

    def param(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()

    def field(self, name: str, default: str = "") -> str:
        return (self.form or {}).get(name, default).strip()


def page(
    template: str, active: str, least: str = "viewer", now: Params | None = None
) -> Callable[[PageFunction], Callable[[Request], Awaitable[Response]]]:
    """Turn a function that gathers data into a route that answers with the whole page, to this role and stronger ones.

    `now` is what the page wants of /stats/now: the shell around it asks the same, and one call serves both.
    """

    def decorate(gather: PageFunction) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            visit = Visit(request, api_of(request))
            found, shell = await asyncio.gather(gather(visit), shell_of(visit, now))
            if isinstance(found, Response):
                return found
            if RANKS[shell["me"]["role"] or "viewer"] < RANKS[least]:
                raise ApiRefusal(403, {"detail": "Your role may not open this page."})
            return render(visit, template, {**shell, "active": active, **found})

        return endpoint

    return decorate


def action(perform: Callable[[Visit], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """A form post: same site, right token, then one call of the API and a redirect."""

    async def endpoint(request: Request) -> Response:
        api = api_of(request)
        form = await read_form(request)
        if not is_same_origin(request) or not has_csrf_token(request, form.get("csrf", "")):
            raise ApiRefusal(
                403, {"detail": "This form is too old or came from another site. Open the page again."}
            )
        return await perform(Visit(request, api, form))

    return endpoint


async def read_form(request: Request) -> dict[str, str]:
    """Fields of a form; the last value of a name counts. A file is read as text. A body over the bound is refused."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_FORM_BYTES:
            raise ApiRefusal(413, {"detail": "This form is too large."})
    kind = request.headers.get("content-type", "")
    try:
        if kind.lower().startswith("multipart/form-data"):
            return multipart_fields(kind, body, MOST_FIELDS)
        return dict(
            parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        )
    except ValueError:
        raise ApiRefusal(400, {"detail": "This form has too many fields."}) from None


def done(target: str, notice: str, object_id: str = "", values: Sequence[str] = ()) -> Response:
    """Redirect to `target` with one sentence of NOTICES to show there. The cookie holds its name and is read once.

    With the id of the object, or the values of UNDO_FIELDS, the notice offers the undo of UNDO.
    """
    response = RedirectResponse(target, status_code=303)
    assert notice in NOTICES
    fields = urlsafe_b64encode(json.dumps(values, ensure_ascii=False).encode()).decode().rstrip("=")
    undo = f"~{object_id}~{fields if values else ''}" if object_id or values else ""
    value = notice + undo if FLASH.fullmatch(notice + undo) else notice  # too long for a cookie
    response.set_cookie("foliot_flash", value, max_age=20, path="/console", samesite="lax", httponly=True)
    return response


async def shell_of(visit: Visit, now: Params | None = None) -> Context:
    """What every page shows around its content: who, where, freezes in force, how far behind the scheduler is."""
    me, freezes, stats, incidents = await asyncio.gather(
        visit.api.me(),
        _optional(visit.api, "/freezes"),
        visit.api.call("GET", "/stats/now", params=now),
        _optional(visit.api, "/incidents", state="open", limit=100),
    )
    in_force = [each for each in freezes.get("items", []) if each["status"] == "in_force"]
    workspaces = await _optional(visit.api, "/workspaces") if me["is_system"] else {}
    return {
        "me": me,
        "freezes_in_force": in_force,
        "shell_stats": stats,
        "open_incidents": len(incidents.get("items", [])),
        "workspaces": workspaces.get("items", []),
    }


async def _optional(api: Api, path: str, **params: str | int) -> dict[str, Any]:
    """A part of the shell that some roles may not read."""
    answer = await api.answer("GET", path, params=params)
    return answer.data if answer.is_success else {}


def render(visit: Visit, template: str, context: Context, status: int = 200) -> HTMLResponse:
    request, reader = visit.request, visit.reader
    t = reader.translate
    role = (context.get("me") or {}).get("role") or "viewer"
    html = environment().get_template(template).render(
        **context,
        _=t,
        address=address_of(request) if request.method == "GET" else HOME,
        is_live=request.method == "GET",
        language=visit.language,
        languages=text.LANGUAGES,
        navigation=NAVIGATION,
        csrf=csrf_token(request),
        time=reader.time,
        full_time=reader.full_time,
        with_times=reader.with_times,
        now=reader.now,
        zone=reader.zone or "job",
        status=lambda value: text.status_mark(value, t((value or "unknown").replace("_", " "))),
        may=lambda least: RANKS[role] >= RANKS[least],
        **_flash(request, t),
        theme=theme if (theme := request.cookies.get("foliot_theme")) in ("light", "dark") else None,
        live_kinds=LIVE_KINDS,
        curl=curl,
        charts=charts,
    )  # fmt: skip
    response = HTMLResponse(html, status_code=status, headers=SECURITY_HEADERS)
    if "foliot_flash" in request.cookies:
        response.delete_cookie("foliot_flash", path="/console")
    return response


def address_of(request: Request) -> str:
    """Path and query of the request. The Host header plays no part in it."""
    path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _flash(request: Request, t: text.Translate) -> dict[str, Any]:
    """The sentence that the cookie names, the address of its undo and its fields. Text from a cookie is never shown or formatted."""
    given = FLASH.fullmatch(request.cookies.get("foliot_flash", ""))
    if given is None or given["notice"] not in NOTICES:
        return {"flash": None, "undo": None, "undo_fields": {}}
    notice, object_id, names = given["notice"], given["id"] or "", UNDO_FIELDS.get(given["notice"], ())
    values = _undo_values(given["values"] or "")
    can_undo = notice in UNDO and (object_id or names) and len(values) == len(names)
    undo = UNDO[notice].format(object_id) if can_undo else None
    return {"flash": t(NOTICES[notice]), "undo": undo, "undo_fields": dict(zip(names, values, strict=False))}


def _undo_values(raw: str) -> list[str]:
    try:
        found = json.loads(urlsafe_b64decode(raw + "=" * (-len(raw) % 4))) if raw else []
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else []


def curl(method: str, path: str, body: Any = None) -> str:
    """The request of an action as a shell line, for the address and key in the caller's environment."""
    verb = "" if method == "GET" else f" -X {method}"
    sent = "" if body is None else f" \\\n  --json {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    address = f'"$FOLIOT_API_URL/api/v1"{shlex.quote(path)}'
    return f'curl{verb} {address} \\\n  -H "Authorization: Bearer $FOLIOT_API_KEY"{sent}'


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("foliot.web.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ms": text.milliseconds,
        "number": text.number,
        "bounded": text.bounded,
        "pretty": text.as_json,
        "sentence": text.sentence_case,
    }
    made.filters |= {"python": repr, "filter_value": text.filter_value}
    made.filters |= {"shell": shlex.quote, "pattern": text.browser_pattern, "plain": text.without_colours}
    made.filters |= {"own_links": text.own_links, "person": name_person}
    return made


@cache
def static_files() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (files("foliot.web.console") / "static").iterdir()}


@cache
def compressed_files() -> dict[str, bytes]:
    """The same for browsers that accept gzip. They hold nothing secret; pages do, and are sent as they are."""
    return {name: gzip.compress(body, mtime=0) for name, body in static_files().items()}


async def static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static_files():
        return Response(status_code=404)
    headers = {"Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
    body = static_files()[name]
    if "gzip" in request.headers.get("accept-encoding", ""):
        body = compressed_files()[name]
        headers["Content-Encoding"] = "gzip"
    return Response(body, media_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=headers)


async def on_not_signed_in(request: Request, error: Exception) -> Response:
    target = address_of(request)
    wanted = "" if request.method != "GET" or target == HOME else f"?next={quote(target)}"
    return RedirectResponse(f"/console/sign-in{wanted}", status_code=303, headers=SECURITY_HEADERS)


async def on_refusal(request: Request, error: Exception) -> Response:
    """Show the message of the API on a page. Redirect a session that has ended to the sign-in page."""
    assert isinstance(error, ApiRefusal)
    if error.status == HTTPStatus.UNAUTHORIZED:
        return await on_not_signed_in(request, error)
    try:
        visit = Visit(request, api_of(request))
    except NotSignedIn:
        return await on_not_signed_in(request, error)
    try:
        shell = await shell_of(visit)
    except ApiRefusal as refusal:
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            return await on_not_signed_in(request, refusal)
        if refusal.status in (403, 404) and WORKSPACE_COOKIE in request.cookies:
            return forget_workspace()
        return render_plain(visit, error)
    return render(visit, "error.html", {**shell, "active": "", "refusal": error}, error.status)


def forget_workspace() -> Response:
    """Lead to the key's own workspace: the chosen one is gone or closed to this key."""
    response = RedirectResponse(HOME, status_code=303, headers=SECURITY_HEADERS)
    response.delete_cookie(WORKSPACE_COOKIE, path="/console")
    return response


def render_plain(visit: Visit, refusal: ApiRefusal) -> HTMLResponse:
    """The error without the shell, for times when the API answers nothing."""
    return render(visit, "plain_error.html", {"refusal": refusal, "me": None}, refusal.status)


async def on_http_error(request: Request, error: Exception) -> Response:
    """An unknown address or a wrong method, as a page. A slash at the end is dropped, whatever host the request names."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    if error.status_code == HTTPStatus.NOT_FOUND and request.method == "GET" and path.endswith("/"):
        return RedirectResponse(path.rstrip("/"), status_code=307)
    known = error.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    sentence = "This address does not take that method." if known else "There is no such page."
    response = await on_refusal(request, ApiRefusal(error.status_code, {"detail": sentence}))
    response.headers.update(error.headers or {})
    return response


async def on_failure(request: Request, error: Exception) -> Response:
    """A page for a fault of the console. The error is raised again behind it and reaches the log."""
    detail = "Foliot failed at this; its log holds the reason under this request id."
    problem = {"detail": detail, "request_id": request.scope.get("state", {}).get("request_id")}
    return render_plain(Visit(request, visitor_api(request)), ApiRefusal(500, problem))


class SecurityHeaders:
    """Adds the headers that an answer of the console lacks, such as a redirect or a forwarded file. Those that it has stay."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                policy = headers.get("content-security-policy", "")
                if "/static/" not in scope["path"]:
                    if "frame-ancestors" not in policy and "sandbox" not in policy:
                        headers["content-security-policy"] = CONTENT_POLICY
                    for name, value in SECURITY_HEADERS.items():
                        headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers)


def create_console(
    api: ASGIApp, database: Database, *, links: SignInLinks | None = None, openid: OpenIdSignIn | None = None
) -> Starlette:
    """Build the console. `api` is the application that serves /api/v1 in this process; pages use no more of `database` than its clock."""
    from foliot.web.console.pages import ROUTES  # noqa: PLC0415  # pages use this module

    routes = [Route("/static/{name}", static_file), *ROUTES]
    console = Starlette(
        routes=routes,
        exception_handlers={
            NotSignedIn: on_not_signed_in,
            ApiRefusal: on_refusal,
            HTTPException: on_http_error,
            Exception: on_failure,
        },
    )
    console.add_middleware(SecurityHeaders)
    console.router.redirect_slashes = False  # that redirect would repeat the Host header
    console.state.api = api
    console.state.database = database
    console.state.links = links or SignInLinks()
    console.state.openid = openid
    return console
