"""The description of the API (OpenAPI 3.1), served to whoever has a key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts

from foliot.web.auth import Viewer
from foliot.web.idempotency import HEADER, PARAMETER
from foliot.web.links import link
from foliot.web.routes import GuardedRoute, permission_of

routes = APIRouter(route_class=GuardedRoute)


@routes.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Viewer) -> JSONResponse:
    return JSONResponse(described(request.app))


def described(app: Any) -> dict[str, Any]:
    """FastAPI's description, with the permission that each operation needs, the key that every POST takes and where its answer leads."""
    schema: dict[str, Any] = app.openapi()
    for route in iter_route_contexts(app.routes):
        permission = permission_of(route)
        for method in route.methods or ():
            operation = schema["paths"].get(route.path, {}).get(method.lower())
            if operation is not None and permission is not None:
                operation["x-foliot-permission"] = permission.value
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _without_null(parameter["schema"])
                if method == "POST":
                    operation["parameters"] = _with_key(operation.get("parameters", []))
    link(schema)
    return schema


def _with_key(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """FastAPI keeps what it made, and this may be asked twice."""
    return [*(each for each in parameters if each["name"] != HEADER), PARAMETER]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter may be left out, which FastAPI writes as null; in an address or a header that would be four letters."""
    kept = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**kept[0], **rest} if len(kept) == 1 else schema
