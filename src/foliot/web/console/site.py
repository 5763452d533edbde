"""The console as an ASGI application: routes, the shell around each page, forms, headers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from foliot.services import Database
from foliot.web.console import charts, text
from foliot.web.console.api import Api, ApiRefusal
from foliot.web.console.session import (
    HOME,
    NotSignedIn,
    SignInLinks,
    api_of,
    csrf_token,
    has_csrf_token,
    is_same_origin,
    now_of,
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
STATIC = {"console.css": "text/css", "console.js": "text/javascript", "icons.svg": "image/svg+xml"}
MOST_FORM_BYTES = 600_000
NAVIGATION = (
    ("/console/", "Today", "today", "viewer"),
    ("/console/jobs", "Jobs", "jobs", "viewer"),
    ("/console/runs", "Runs", "runs", "viewer"),
    ("/console/agenda", "Agenda", "agenda", "viewer"),
    ("/console/capacity", "Capacity", "capacity", "viewer"),
    ("/console/freezes", "Freezes", "freezes", "viewer"),
    ("/console/audit", "Audit", "audit", "admin"),
    ("/console/settings", "Settings", "settings", "viewer"),
)  # address, label, icon, least role
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
        zone = None if chosen in ("", "job") else chosen
        self.reader = text.Reader(now_of(request), text.translator(self.language), zone)

    @property
    def path(self) -> dict[str, str]:
        return dict(self.request.path_params)

    def param(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()

    def field(self, name: str, default: str = "") -> str:
        return (self.form or {}).get(name, default).strip()


def page(template: str, active: str) -> Callable[[PageFunction], Callable[[Request], Awaitable[Response]]]:
    """Turn a function that gathers data into a route that answers with the whole page."""

    def decorate(gather: PageFunction) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            visit = Visit(request, api_of(request))
            found, shell = await asyncio.gather(gather(visit), shell_of(visit))
            if isinstance(found, Response):
                return found
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
    """Fields of an urlencoded form; the last value of a name counts. A body over the bound is refused."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_FORM_BYTES:
            raise ApiRefusal(413, {"detail": "This form is too large."})
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100))


def done(target: str, message: str, **values: str) -> Response:
    """Redirect to `target` with one sentence to show there. The cookie holds the sentence's key and is read once."""
    response = RedirectResponse(target, status_code=303)
    content = "|".join([message, *(f"{name}={value}" for name, value in values.items())])
    response.set_cookie(
        "foliot_flash",
        content.encode("ascii", "replace").decode()[:400],
        max_age=20,
        path="/console",
        samesite="lax",
        httponly=True,
    )
    return response


async def shell_of(visit: Visit) -> Context:
    """What every page shows around its content: who, where, freezes in force, how far behind the scheduler is."""
    me, freezes, stats = await asyncio.gather(
        visit.api.get("/me"), _optional(visit.api, "/freezes"), visit.api.get("/stats", days=1)
    )
    in_force = [each for each in freezes.get("items", []) if each["status"] == "in_force"]
    workspaces = await _optional(visit.api, "/workspaces") if me["is_system"] else {}
    return {
        "me": me,
        "freezes_in_force": in_force,
        "shell_stats": stats,
        "workspaces": workspaces.get("items", []),
    }


async def _optional(api: Api, path: str) -> dict[str, Any]:
    """A part of the shell that some roles may not read."""
    answer = await api.answer("GET", path)
    return answer.data if answer.is_success else {}


def render(visit: Visit, template: str, context: Context, status: int = 200) -> HTMLResponse:
    request, reader = visit.request, visit.reader
    t = reader.translate
    role = (context.get("me") or {}).get("role") or "viewer"
    html = environment().get_template(template).render(
        **context,
        _=t,
        path=request.url.path,
        query=str(request.url.query),
        language=visit.language,
        languages=text.LANGUAGES,
        navigation=NAVIGATION,
        csrf=csrf_token(request),
        time=reader.time,
        full_time=reader.full_time,
        now=reader.now,
        zone=reader.zone or "job",
        status=lambda value: text.status_mark(value, t((value or "unknown").replace("_", " "))),
        may=lambda least: RANKS[role] >= RANKS[least],
        flash=_flash(request, t),
        charts=charts,
    )  # fmt: skip
    response = HTMLResponse(html, status_code=status, headers=SECURITY_HEADERS)
    if "foliot_flash" in request.cookies:
        response.delete_cookie("foliot_flash", path="/console")
    return response


def _flash(request: Request, t: text.Translate) -> str | None:
    raw = request.cookies.get("foliot_flash")
    if not raw:
        return None
    message, *pairs = raw.strip('"').split("|")
    values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    try:
        return t(message, **values)
    except (KeyError, IndexError, ValueError):
        return None


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("foliot.web.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"ms": text.milliseconds, "number": text.number, "pretty": text.as_json}
    return made


async def static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        return Response(status_code=404)
    body = (files("foliot.web.console") / "static" / name).read_bytes()
    headers = {"Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff"}
    return Response(body, media_type=STATIC[name], headers=headers)


async def on_not_signed_in(request: Request, error: Exception) -> Response:
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    wanted = "" if request.method != "GET" or target == HOME else f"?next={target}"
    return RedirectResponse(f"/console/sign-in{wanted}", status_code=303, headers=SECURITY_HEADERS)


async def on_refusal(request: Request, error: Exception) -> Response:
    """Show the message of the API on a page. Redirect a session that has ended to the sign-in page."""
    assert isinstance(error, ApiRefusal)
    if error.status == HTTPStatus.UNAUTHORIZED:
        return await on_not_signed_in(request, error)
    try:
        visit = Visit(request, api_of(request))
        shell = await shell_of(visit)
    except (NotSignedIn, ApiRefusal):
        return await on_not_signed_in(request, error)
    return render(visit, "error.html", {**shell, "active": "", "refusal": error}, error.status)


def create_console(api: ASGIApp, database: Database, *, links: SignInLinks | None = None) -> Starlette:
    """Build the console. `api` is the application that serves /api/v1 in this process; only the clock of `database` is used."""
    from foliot.web.console.pages import ROUTES  # noqa: PLC0415  # pages use this module

    routes = [Route("/static/{name}", static_file), *ROUTES]
    console = Starlette(
        routes=routes, exception_handlers={NotSignedIn: on_not_signed_in, ApiRefusal: on_refusal}
    )
    console.state.api = api
    console.state.database = database
    console.state.links = links or SignInLinks()
    return console
