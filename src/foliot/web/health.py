"""/healthz and /readyz: whether this process is alive and whether it can work. They need no key and show no data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import JSONResponse


@dataclass(frozen=True, slots=True)
class Readiness:
    """`roles` of this process; `missing` parts that are not ready yet; `warnings` about weak spots, as sentences."""

    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


Probe = Callable[[], Awaitable[Readiness]]
PROBES = frozenset({"/healthz", "/readyz"})
NEVER_CACHED = {"Cache-Control": "no-store"}


def router(probe: Probe) -> APIRouter:
    routes = APIRouter()

    @routes.api_route("/healthz", methods=["GET", "HEAD"])
    async def alive() -> JSONResponse:
        return JSONResponse({"status": "alive"}, headers=NEVER_CACHED)

    @routes.api_route("/readyz", methods=["GET", "HEAD"])
    async def ready() -> JSONResponse:
        found = await probe()
        body = {
            "status": "not ready" if found.missing else "ready",
            "roles": list(found.roles),
            "missing": list(found.missing),
            "warnings": list(found.warnings),
        }
        return JSONResponse(body, status_code=503 if found.missing else 200, headers=NEVER_CACHED)

    return routes
