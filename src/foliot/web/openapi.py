"""The description of the API (OpenAPI 3.1), served to every key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from pydantic.json_schema import models_json_schema

from foliot.web.api.writes import DRY_RUN
from foliot.web.auth import Viewer
from foliot.web.idempotency import PARAMETER, REPLAYED
from foliot.web.routes import GuardedRoute, permission_of
from foliot.wire.audit import EventOut, MissedEventsOut
from foliot.wire.runs import LogEndOut
from foliot.wire.shape import Problem, Shape

routes = APIRouter(route_class=GuardedRoute)
LICENCE = "Apache-2.0"
ABOUT = """Durable, multi-tenant job scheduling on PostgreSQL: one record for every planned time.

Every request needs `Authorization: Bearer <key>`. Errors are `application/problem+json` with a stable `code`.
Lists have `limit` and `cursor`. Writes take `dry_run`; POST takes `Idempotency-Key`."""
TAGS = {
    "jobs": "What runs and when: create, edit, run, pause, archive; one or many.",
    "batch": "Several writes in one transaction.",
    "runs": "The record of every planned time: search, cancel, retry, logs and files.",
    "time": "Previews, explanations, the agenda and statistics.",
    "calendars": "Named periods in which jobs must not run, or may only run.",
    "freezes": "Temporary holds over jobs.",
    "limits": "How many runs may be under way at once.",
    "usage": "What runs used (tokens, money, any unit), and budgets.",
    "events": "A live stream of what happens.",
    "incidents": "Failures that need a look, and what was sent about them.",
    "channels": "Where notifications go.",
    "notification-rules": "Who hears of what.",
    "webhooks": "Addresses of jobs that other programs call: signed triggers and check-ins. Outgoing webhooks are channels.",
    "imports": "Jobs of other schedulers.",
    "rooms": "Chat rooms that jobs and agents write in, and their webhooks.",
    "secrets": "Values that jobs use and nobody reads, and the master key.",
    "members": "People, agents and services of a workspace.",
    "keys": "API keys.",
    "workspaces": "Tenants, their quotas and defaults.",
    "audit": "Who changed what.",
    "fleet": "Workers, queues and job types.",
    "hosts": "Machines that fetch their runs over HTTP.",
    "worker": "The protocol of workers over HTTP.",
}
RATE_LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
HEADERS = {
    "RateLimit-Limit": ("integer", "Requests that may come at once; absent where none are counted."),
    "RateLimit-Remaining": ("integer", "How many of them are left."),
    "RateLimit-Reset": ("integer", "Seconds until all of them are left again."),
    "Retry-After": ("integer", "Seconds to wait before the next try."),
    "X-Request-Id": ("string", "The id of this request, in the server's log."),
    "Location": ("string", "The address of what was created."),
    REPLAYED: (
        "string",
        "`true` where this repeats the answer to an earlier request with the same Idempotency-Key.",
    ),
}
# Shapes that FastAPI does not see: of errors, and of the data of events.
UNSEEN: tuple[type[Shape], ...] = (Problem, EventOut, LogEndOut, MissedEventsOut)
REF = "#/components/schemas/"


@routes.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Viewer) -> JSONResponse:
    return JSONResponse(describe_api(request.app))


def describe_api(app: Any) -> dict[str, Any]:
    """Return FastAPI's description in the form that validators accept and generators of clients understand."""
    if not hasattr(app.state, "description"):
        app.state.description = _describe(app)
    description: dict[str, Any] = app.state.description
    return description


def _describe(app: Any) -> dict[str, Any]:
    schema: dict[str, Any] = app.openapi()
    schema["info"] |= {
        "description": ABOUT,
        "license": {"name": LICENCE, "identifier": LICENCE},
        "contact": {"name": "Foliot"},
    }
    schema["servers"] = [{"url": app.state.root_path or "/", "description": "This server."}]
    schema["tags"] = [{"name": name, "description": about} for name, about in TAGS.items()]
    shapes = schema["components"]["schemas"]
    shapes |= models_json_schema([(each, "serialization") for each in UNSEEN], ref_template=REF + "{model}")[
        1
    ]["$defs"]
    schema["components"]["headers"] = {
        name: {"description": about, "schema": {"type": kind}} for name, (kind, about) in HEADERS.items()
    }
    for route in iter_route_contexts(app.routes):
        permission = permission_of(route)
        for method in route.methods or ():
            operation = schema["paths"].get(route.path, {}).get(method.lower())
            if operation is not None and permission is not None:
                operation["x-foliot-permission"] = permission.value
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _without_null(parameter["schema"])
                if method == "POST":
                    operation.setdefault("parameters", []).append(PARAMETER)
                _describe_answers(method, operation["responses"], shapes)
    add_links(schema)
    described: dict[str, Any] = _rename(schema, _names(shapes))
    return described


def _describe_answers(method: str, answers: dict[str, Any], shapes: dict[str, Any]) -> None:
    """Add headers, and give each answer one named shape."""
    for status, answer in answers.items():
        headers = ["X-Request-Id"]
        if status.startswith("2"):
            headers += [
                *RATE_LIMITS,
                *((REPLAYED,) if method == "POST" else ()),
                *(("Location",) if status == "201" else ()),
            ]
        if status == "429":
            headers += RATE_LIMITS
        if status in {"429", "503"}:
            headers.append("Retry-After")
        answer.setdefault("headers", {}).update(
            {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
        )
    dry_run = _shape_of(answers.get(DRY_RUN, {}))
    if made := answers.get("201"):
        alternatives = _shape_of(made).get("anyOf", ())
        if kept := [each for each in alternatives if each != dry_run]:
            made["content"]["application/json"]["schema"] = kept[0]
    elif alternatives := _shape_of(answers.get("200", {})).get("anyOf"):
        # A named union: generators call an unnamed one by the operation, and make a class for each.
        named = "Or".join(each["$ref"].removeprefix(REF) for each in alternatives)
        shapes[named] = {"title": named, "anyOf": alternatives, "description": "The second with `dry_run`."}
        answers["200"]["content"]["application/json"]["schema"] = {"$ref": REF + named}


def _shape_of(answer: dict[str, Any]) -> dict[str, Any]:
    shape: dict[str, Any] = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return shape


def _names(shapes: dict[str, Any]) -> dict[str, str]:
    """Return other names for shapes whose name is no name in a programming language."""
    names = {}
    for name in shapes:
        plain = re.sub(r"^(Counted)?Page_(\w+?)(Out)?_$", r"\2Page", name)
        names[name] = plain.replace("-", "")
    if len(set(names.values())) < len(names):
        raise RuntimeError("Two shapes of the API would have the same name in its description.")
    return {name: plain for name, plain in names.items() if name != plain}


def _rename(part: Any, names: dict[str, str]) -> Any:
    if isinstance(part, list):
        return [_rename(each, names) for each in part]
    if not isinstance(part, dict):
        return part
    renamed = {names.get(key, key): _rename(value, names) for key, value in part.items()}
    if part.get("type") == "boolean":  # openapi-generator takes a constant for text
        renamed.pop("const", None)
    for key in names.keys() & part.keys():
        renamed[names[key]]["title"] = names[key]
    if isinstance(ref := part.get("$ref"), str):
        named = ref.removeprefix(REF)
        renamed["$ref"] = REF + names.get(named, named) if named != ref else ref
    return renamed


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
