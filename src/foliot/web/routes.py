"""The treatment of a request by a route of the API: first the key, then the body, strictly; whether it was done before (Idempotency-Key), and
whether its caller knows what it is about as it is (If-Match); then what FastAPI does.

Why: docs/decisions/600-access-is-checked-first.md
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from foliot.domain.access import Permission
from foliot.domain.errors import Invalid, StaleRevision
from foliot.web.auth import Guard
from foliot.web.errors import Refused, summarize_errors
from foliot.web.idempotency import HEADER, run_once
from foliot.web.preconditions import check_if_match, remember_etag
from foliot.web.strict_json import LARGEST, InvalidJson, has_unstorable_text, read_json
from foliot.wire.shape import MEDIA_TYPE, Problem, did_you_mean, pointer

JSON = frozenset({"application/json"})
MERGE_PATCH = JSON | {
    "application/merge-patch+json"
}  # what PATCH does with null and absent fields is RFC 7396
MOST_PARAMETERS = 200  # repeated ones included
BODY_PART_WITHIN = 10.0  # seconds until the next part of a body
MOST_NAMED = 20  # unknown parameters, in one answer
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CONTROL = re.compile("[\x00-\x1f\x7f]")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
T = TypeVar("T")
_PROBLEM: dict[str, Any] = {
    "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"description": "No valid key", **_PROBLEM},
    403: {"description": "This key may not", **_PROBLEM},
    404: {"description": "No such workspace", **_PROBLEM},
    422: {"description": "Some fields are not as they should be", **_PROBLEM},
    429: {"description": "Too many requests", **_PROBLEM},
    503: {"description": "No database right now", **_PROBLEM},
}
WITH_BODY: dict[int | str, dict[str, Any]] = {
    400: {"description": "Not JSON, or JSON that two programs could read differently", **_PROBLEM},
    413: {"description": "More than 1 MiB", **_PROBLEM},
    415: {"description": "Not application/json", **_PROBLEM},
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"description": "No such thing, or not yours", **_PROBLEM}}
STALE: dict[int | str, dict[str, Any]] = {412: {"description": "Edited since it was read", **_PROBLEM}}
CONFLICT: dict[int | str, dict[str, Any]] = {409: {"description": "Not from where it is now", **_PROBLEM}}


class JsonRequest(Request):
    """A request whose body is strict JSON of bounded size."""

    most = LARGEST

    async def stream(self) -> AsyncIterator[bytes]:  # type: ignore[override]
        size, parts = 0, super().stream()
        while True:
            try:
                async with asyncio.timeout(BODY_PART_WITHIN):
                    chunk = await anext(parts)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise Refused(
                    408, "The body did not arrive in time.", headers={"Connection": "close"}
                ) from None
            size += len(chunk)
            if size > self.most:
                raise too_large(self.most)
            yield chunk

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = await self._read()
        return self._json

    async def _read(self) -> Any:
        announced = self.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self.most:
            raise too_large(self.most)
        raw = await self.body()
        if not raw:
            return None
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (MERGE_PATCH if self.method == "PATCH" else JSON):
            raise Refused(
                415,
                f"The body must be application/json, not {kind or 'of no type'}."[:200],
                hint="Send the header `Content-Type: application/json`; curl does with --json.",
            )
        try:
            found = read_json(raw)
        except InvalidJson as error:
            raise Refused(400, str(error)) from None
        if has_unstorable_text(found):
            raise Invalid("Text cannot hold NUL or half a surrogate pair.")
        return found


class GuardedRoute(APIRoute):
    def get_route_handler(self) -> Handler:
        handle, guard, has_body = super().get_route_handler(), guard_of(self.dependant), self.body_field
        shape, status = self.response_model, self.status_code or 200
        known = frozenset(_parameters(self.dependant))
        ids = frozenset(_ids(self.dependant))
        most = getattr(self.endpoint, "largest_body", LARGEST)

        async def guarded(request: Request) -> Response:
            request = JsonRequest(request.scope, request.receive)
            request.most = most
            if guard is not None:
                await guard(request)
            check_parameters(request, ids)
            if guard is not None:
                reject_unknown_parameters(request, known)
            if has_body is not None:
                await request.json()
            if guard is not None and request.method == "POST" and HEADER in request.headers:
                return await run_once(request, shape, status, checked)
            return await checked(request)

        async def checked(request: Request) -> Response:
            if guard is None or request.method in SAFE:
                return await handle(request)
            try:
                await check_if_match(request)
                return await handle(request)
            except StaleRevision:
                await remember_etag(request)
                raise

        return guarded


def check_parameters(request: Request, ids: frozenset[str]) -> None:
    """Refuse more parameters than a filter needs, and characters that no name has: PostgreSQL cannot store NUL.

    Text that is no id is left to its route, which answers as for an unknown id.
    """
    if any(_CONTROL.search(text) for name, text in request.path_params.items() if name not in ids):
        raise Refused(404, "There is no such thing here.")
    if request.scope["query_string"].count(b"&") >= MOST_PARAMETERS:
        raise Invalid(
            f"A request has at most {MOST_PARAMETERS} parameters.",
            hint="Ask in several requests, or with a filter that names less.",
        )
    if b"%00" in request.scope["query_string"]:
        for name, value in request.query_params.multi_items():
            if has_unstorable_text(value):
                raise Invalid("Text cannot hold NUL.", pointer=f"/{name}")


def api_router(tag: str) -> APIRouter:
    """Return a router whose routes the app takes over without building them again."""
    return APIRouter(
        prefix="/api/v1",
        tags=[tag],
        route_class=GuardedRoute,
        responses=_REFUSALS,
        generate_unique_id_function=attrgetter("name"),  # stable operation ids, for generated clients
    )


def permission_of(route: Any) -> Permission | None:
    dependant = getattr(route, "dependant", None)
    guard = guard_of(dependant) if isinstance(dependant, Dependant) else None
    return None if guard is None else guard.permission


def guard_of(dependant: Dependant) -> Guard | None:
    return next((each.call for each in dependant.dependencies if isinstance(each.call, Guard)), None)


def reject_unknown_parameters(request: Request, known: frozenset[str]) -> None:
    """Refuse unknown parameters: an ignored filter would return everything, an ignored dry_run would apply the change."""
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known][:MOST_NAMED]
    if not unknown:
        return
    faults = tuple(
        Invalid(
            f'There is no parameter "{name[:64]}" here.',
            pointer=pointer((name[:64],)),
            hint=_meant(request.method, name, known),
        )
        for name in unknown
    )
    raise faults[0] if len(faults) == 1 else Invalid(summarize_errors(len(faults)), parts=faults)


def _meant(method: str, name: str, known: frozenset[str]) -> str:
    if name == "dry_run" and method not in SAFE:
        return "Nothing was done. This is tried by dry_run in its body, or not at all."
    named = f"Known here: {', '.join(sorted(known))}." if known else "It takes none."
    return did_you_mean(name, known) or named


def _parameters(dependant: Dependant) -> Iterator[str]:
    yield from (each.alias for each in dependant.query_params)
    for each in dependant.dependencies:
        yield from _parameters(each)


def _ids(dependant: Dependant) -> Iterator[str]:
    """Names of the parameters in the path that are parsed as ids before anything looks for them."""
    for each in dependant.path_params:
        if each.field_info.json_schema_extra == {"format": "uuid"}:
            yield each.alias
    for inner in dependant.dependencies:
        yield from _ids(inner)


def too_large(most: int = LARGEST) -> Refused:
    return Refused(413, f"The body is larger than {most // 1024} KiB.", headers={"Connection": "close"})


def max_body_size(most: int) -> Callable[[T], T]:
    """Set another size limit for the body of a route."""

    def mark(endpoint: T) -> T:
        endpoint.largest_body = most  # type: ignore[attr-defined]
        return endpoint

    return mark
