"""`Idempotency-Key` on every POST of the API: the first request is applied, each repeat gets the same answer.

Why: docs/decisions/603-idempotency-keys.md
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

from fastapi import Request, Response

from foliot.domain.access import Scope
from foliot.domain.errors import DatabaseUnavailable, Invalid
from foliot.domain.ids import JobId, RunId
from foliot.services.identity import idempotency
from foliot.services.identity.authentication import Caller
from foliot.services.identity.idempotency import IdempotencyRecord, IdempotentRequest, StoredResponse
from foliot.services.jobs import job_search
from foliot.services.runs import history
from foliot.services.secrets import master_key
from foliot.services.secrets.vault import Vault
from foliot.web.mapping.jobs import etag, job_out, run_out
from foliot.wire.instants import read_id
from foliot.wire.jobs import JobOut
from foliot.wire.runs import RunOut

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
SECRETS = "/api/v1/secrets"
LARGEST_KEPT = 1 << 20  # bytes of an answer
KEPT_HEADERS = ("content-type", "location", "etag")
PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A key of your own for this request. Within 24 hours a repeat with the same key and body is not done again"
    f" and gets the first answer, with the header `{REPLAYED}: true`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"},
}
_OURS = secrets.token_bytes(32)
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


async def run_once(
    request: Request, shape: Any, status: int, handle: Callable[[Request], Awaitable[Response]]
) -> Response:
    """`shape` and `status` are those of the route's successful answer."""
    caller: Caller = request.state.caller
    db, workspace_id = request.app.state.database, caller.workspace_id
    begun = await idempotency.begin(db, workspace_id, await _asked(request, caller))
    if isinstance(begun, IdempotencyRecord):
        return await _again(request, begun, shape, status)
    request.state.caller = replace(caller, claim=begun)
    try:
        answer = await handle(request)
    except BaseException:
        # The first error matters more than a key that could not be released: it expires after a minute.
        with suppress(DatabaseUnavailable):
            await idempotency.release(db, workspace_id, begun)
        raise
    if not 200 <= answer.status_code < 300:
        await idempotency.release(db, workspace_id, begun)
    else:
        with suppress(DatabaseUnavailable):  # the request is applied: answer it
            await idempotency.finish(db, workspace_id, begun, answer.status_code, _kept(answer))
    return answer


async def _asked(request: Request, caller: Caller) -> IdempotentRequest:
    given = request.headers.getlist(HEADER)
    if len(given) != 1 or not _KEY.fullmatch(given[0]):
        raise Invalid(
            "An Idempotency-Key is one to 255 visible ASCII characters, and comes once.",
            pointer="/Idempotency-Key",
            hint="A UUID is a good one.",
        )
    parts = (request.method, request.url.path, request.url.query, await request.body())
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return IdempotentRequest(
        caller.holder.principal.id, given[0], await _kept_apart(request, caller, digest.digest())
    )


async def _kept_apart(request: Request, caller: Caller, digest: bytes) -> bytes:
    """Return a keyed digest for requests with a secret: a plain one would allow guesses by readers of the table."""
    if not request.url.path.startswith(SECRETS):
        return digest
    vault: Vault = request.app.state.vault
    if vault.present is None and request.query_params.get("dry_run") is not None:
        return hashlib.sha256(_OURS + digest).digest()  # a dry run creates no master key
    await master_key.check_key(request.app.state.database, vault, caller.actor)
    return vault.keyed(digest)


async def _again(request: Request, held: IdempotencyRecord, shape: Any, status: int) -> Response:
    if held.answer is not None:
        answer = held.answer
        return Response(answer.body, answer.status, {**answer.headers, REPLAYED: "true"})
    rebuilt = await _rebuilt(request, held, shape)
    if rebuilt is None:
        raise idempotency.lost(held)
    body, headers = rebuilt
    return Response(
        body.model_dump_json(), status, {**headers, REPLAYED: "true"}, media_type="application/json"
    )


async def _rebuilt(
    request: Request, held: IdempotencyRecord, shape: Any
) -> tuple[JobOut | RunOut, dict[str, str]] | None:
    """Rebuild the answer where the process died between the commit and the answer, from the job or run as it is now."""
    db, workspace_id = request.app.state.database, request.state.caller.workspace_id
    kind, text = held.thing or ("", "")
    found = read_id(text)
    if found is not None and kind == "job" and _may_be(shape, JobOut):
        written = await job_search.written(db, Scope(workspace_id), JobId(found))
        headers = {"Location": f"/api/v1/jobs/{found}", "ETag": etag(written.job)}
        return job_out(written.job, written.warnings), headers
    if found is not None and kind == "run" and _may_be(shape, RunOut):
        run = await history.run(db, Scope(workspace_id), RunId(found))
        return run_out(run), {"Location": f"/api/v1/runs/{found}"}
    return None


def _may_be(shape: Any, wanted: type) -> bool:
    """Return whether the route answers with this shape, alone or beside the shape of a dry run."""
    return shape is wanted or wanted in get_args(shape)


def _kept(answer: Response) -> StoredResponse | None:
    """Return the answer to store; None for a stream and for no-store (a new key)."""
    body = getattr(answer, "body", None)
    is_private = "no-store" in answer.headers.get("cache-control", "")
    if body is None or is_private or len(body) > LARGEST_KEPT:
        return None
    headers = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
    return StoredResponse(answer.status_code, headers, bytes(body))
