"""Builds the ASGI application. Deny by default: a route is open only if its path is in `OPEN`; every other route names a permission."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from foliot import __version__
from foliot.domain.artifacts import MOST_BYTES
from foliot.domain.logs import DEFAULT_LIMITS, LogLimits
from foliot.handlers.dependencies import DEFAULT_EGRESS_POLICY, EgressPolicy
from foliot.services import Database
from foliot.services.hints import Announce
from foliot.services.identity.authentication import Authenticator
from foliot.services.secrets.vault import FixedKeys, Vault
from foliot.services.workers.workers import LEASE
from foliot.web import errors, health, openapi
from foliot.web.admission import UNLIMITED, AdmissionMiddleware, RequestGate
from foliot.web.api import (
    artifacts,
    audit,
    batch,
    bulk,
    calendars,
    channels,
    defaults,
    events,
    fleet,
    freezes,
    hosts,
    imports,
    incidents,
    job_actions,
    job_edits,
    jobs,
    keys,
    limits,
    logs,
    members,
    notification_rules,
    reports,
    rooms,
    runs,
    secrets,
    usage,
    webhooks,
    worker,
    workspaces,
)
from foliot.web.console.openid import OpenIdSignIn
from foliot.web.console.session import SignInLinks
from foliot.web.console.site import create_console
from foliot.web.dialects import JOB_FIELDS, ROUTERS
from foliot.web.dialects.job_fields import JobFieldsMiddleware
from foliot.web.event_reader import EventReader
from foliot.web.middleware import CompressionMiddleware, MethodMiddleware, RequestMiddleware, RouteMethods
from foliot.web.rate_limits import RateLimits
from foliot.web.reference_page import show_reference
from foliot.web.root_path import RootPathMiddleware
from foliot.web.routes import permission_of
from foliot.web.work_signal import WorkSignal

NOUNS = (
    jobs,
    job_edits,
    job_actions,
    bulk,
    batch,
    imports,
    runs,
    artifacts,
    reports,
    calendars,
    events,
    freezes,
    fleet,
    hosts,
    keys,
    limits,
    usage,
    logs,
    rooms,
    members,
    defaults,
    secrets,
    channels,
    notification_rules,
    incidents,
    webhooks,
    worker,
    workspaces,
    audit,
)
# The console asks for its session itself, /mcp for a key.
OPEN = frozenset(
    {
        "/",
        "/console",
        "/docs",
        "/healthz",
        "/readyz",
        "/mcp",
        "/llms.txt",
        "/llms/{page:path}.md",
        "/hooks/{token}",  # proven by a signature, or by the token itself
        "/hooks/{token}/{state}",
        "/feeds/agenda/{key}.ics",  # proven by the key in it
    }
)


def create_app(
    probe: health.Probe,
    stopping: asyncio.Event,
    database: Database,
    announce: Announce,
    *,
    authenticator: Authenticator | None = None,
    vault: Vault | None = None,
    rates: RateLimits | None = None,
    gate: RequestGate | None = None,
    reach: EgressPolicy = DEFAULT_EGRESS_POLICY,
    bell: WorkSignal | None = None,
    cancel_bell: WorkSignal | None = None,
    changes: WorkSignal | None = None,
    lease: timedelta = LEASE,
    artifact_bytes: int = MOST_BYTES,
    log_limits: LogLimits = DEFAULT_LIMITS,
    with_api: bool = True,
    links: SignInLinks | None = None,
    openid: OpenIdSignIn | None = None,
    agent_routes: Callable[[ASGIApp], list[BaseRoute]] | None = None,
    dialects: Sequence[str] = (),
    public_url: str | None = None,
) -> FastAPI:
    """Build the application.

    `probe` answers /readyz. Streams end when `stopping` is set: they would delay the shutdown. `announce` sends hints, so that
    the engine handles a change at once. `authenticator` holds the quotas of the installation and `rates` limit requests;
    without them there are none. `gate` bounds how many are served at once. Without a `vault` no secret can be stored. `reach` lists the addresses that jobs may use beside the internet.
    `bell` wakes requests that wait for work, `cancel_bell` those that wait for cancellations, `changes` streams; a worker may be silent for `lease`.
    `agent_routes` adds the tools for agents, which call this application, and `dialects` names interfaces of other systems. `public_url` is the address of the installation in answers; without it that of the request; its path is the prefix under which a proxy offers all this. If `with_api` is false, another node serves the API, and this one serves health only.
    """
    # The interactive pages of FastAPI load scripts from a CDN, and its own route for the schema needs no key.
    app = FastAPI(
        title="Foliot",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.stopping = stopping
    app.state.database = database
    app.state.announce = announce
    app.state.reach = reach
    app.state.public_url = public_url
    app.state.authenticator = authenticator or Authenticator(database)
    app.state.rates = rates or RateLimits()
    app.state.gate = gate or RequestGate(UNLIMITED)
    app.state.vault = vault or Vault(FixedKeys())
    app.state.bell = bell or WorkSignal()
    app.state.cancel_bell = cancel_bell or WorkSignal()
    app.state.changes = changes or WorkSignal()
    app.state.event_reader = EventReader(database, app.state.changes)
    app.state.lease = lease
    app.state.artifact_bytes = artifact_bytes  # of one that comes over HTTP
    app.state.log_limits = log_limits
    root_path = app.state.root_path = urlsplit(public_url or "").path.rstrip("/")
    app.state.waiting = Counter()  # workers that wait for work over HTTP, by workspace
    app.state.streams = Counter()  # open ones, by workspace
    if with_api and JOB_FIELDS in dialects:
        app.add_middleware(JobFieldsMiddleware)
    app.add_middleware(MethodMiddleware)
    app.add_middleware(CompressionMiddleware)
    app.add_middleware(AdmissionMiddleware)
    app.add_middleware(RequestMiddleware)
    if root_path:
        app.add_middleware(RootPathMiddleware, root_path=root_path)
    errors.install(app)
    app.include_router(health.router(probe), include_in_schema=False)
    if with_api:
        app.add_api_route("/", to_console, methods=["GET", "HEAD"], include_in_schema=False)
        app.add_api_route("/docs", show_reference, methods=["GET", "HEAD"], include_in_schema=False)
        app.add_api_route("/console", to_console, methods=["GET", "HEAD"], include_in_schema=False)
        app.mount("/console", create_console(app, database, links=links, openid=openid))
        for noun in (*NOUNS, openapi):
            app.router.routes.extend(noun.routes.routes)  # include_router would build each route again
        for name in dialects:
            if name in ROUTERS:
                app.router.routes.extend(ROUTERS[name].routes)
        app.router.routes.extend(webhooks.calls.routes)
        app.router.routes.extend(reports.feeds.routes)
        if agent_routes is not None:
            app.router.routes.extend(agent_routes(app))
    require_declared_routes(app.routes)
    app.state.addresses = RouteMethods(app.routes)
    return app


async def to_console() -> Response:
    return RedirectResponse("/console/", status_code=307)


def require_declared_routes(routes: list[BaseRoute]) -> None:
    """Stop the start if a route is neither in `OPEN` nor names a permission."""
    paths = {str(route.path) for route in iter_route_contexts(routes) if permission_of(route) is None}
    if undeclared := sorted(paths - OPEN):
        raise RuntimeError(f"These routes are neither open nor guarded: {', '.join(undeclared)}")
