"""The description of the API (OpenAPI 3.1), served to every key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts

from foliot.web.auth import Viewer
from foliot.web.idempotency import HEADER, PARAMETER
from foliot.web.routes import GuardedRoute, permission_of

routes = APIRouter(route_class=GuardedRoute)


@routes.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Viewer) -> JSONResponse:
    return JSONResponse(describe_api(request.app))


def describe_api(app: Any) -> dict[str, Any]:
    """Return FastAPI's description, with the permission of each operation, the idempotency key of every POST, and links."""
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
    add_links(schema)
    return schema


def _with_key(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the parameter once: FastAPI caches its description."""
    return [*(each for each in parameters if each["name"] != HEADER), PARAMETER]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from an optional parameter: in a URL or a header it would be the text "null"."""
    kept = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**kept[0], **rest} if len(kept) == 1 else schema


METHODS = ("get", "post", "put", "patch", "delete")
# The path parameter that the `id` of a shape fills.
PRODUCES = {
    "JobOut": "job_id",
    "RunOut": "run_id",
    "CalendarOut": "calendar_id",
    "FreezeOut": "freeze_id",
    "KeyOut": "key_id",
    "MadeKeyOut": "key_id",
    "MemberOut": "member_id",
    "SecretOut": "secret_id",
    "WorkspaceOut": "workspace",
    "RoomOut": "room_id",
}


def add_links(schema: dict[str, Any]) -> None:
    """Add `links` to the answers of the description, in place."""
    takers: dict[str, list[str]] = {}
    for path, operation in _operations(schema):
        for name in set(PRODUCES.values()):
            if f"{{{name}}}" in path:
                takers.setdefault(name, []).append(operation["operationId"])
    for _, operation in _operations(schema):
        for status, answer in operation["responses"].items():
            shape = answer.get("content", {}).get("application/json", {}).get("schema", {})
            if status.startswith("2") and (found := dict(_found(shape, takers))):
                answer["links"] = found


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        yield from ((path, item[method]) for method in METHODS if method in item)


def _found(shape: dict[str, Any], takers: dict[str, list[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, where in _ids(shape):
        for operation in takers.get(name, ()):
            yield operation, {"operationId": operation, "parameters": {name: f"$response.body#{where}"}}


def _ids(shape: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the ids in an answer of this shape. Lists may be empty, so they have no links."""
    named = shape.get("$ref", "").rpartition("/")[2]
    if named in PRODUCES:
        yield PRODUCES[named], "/id"
    for each in shape.get("anyOf", ()):  # a dry run has no id, and its link leads nowhere
        yield from _ids(each)
