"""If-Match and If-None-Match on jobs. An ETag is `"<revision>-<checksum>"`: an edit compares the revision, a cache the whole.

Why: docs/decisions/602-jobs-as-json.md
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Protocol

from fastapi import Depends, Header, Request

from foliot.domain.access import Scope
from foliot.domain.errors import FoliotError, Invalid, StaleRevision
from foliot.domain.ids import JobId
from foliot.services.jobs import job_search
from foliot.services.jobs.job_edits import require_revision
from foliot.web.mapping.jobs import etag
from foliot.wire.instants import read_id

_ONE = r'(W/)?"[!#-~]*"'
_DESCRIBED = rf"^(\*|{_ONE}(, ?{_ONE})*)$"
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1_000,
        description="The ETag it had when it was read, quotes included; 412 where it has been edited since.",
        json_schema_extra={"pattern": _DESCRIBED},
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(max_length=1_000, description="ETags known already; 304 where one of them still holds."),
]
_TAG = re.compile(r'(?:W/)?"[^"]*"')
_PARTS = re.compile(rf"{_TAG.pattern}|[^,\s]+")
_REVISION = re.compile(r'"([0-9]{1,9})(?:-[0-9a-f]{1,16})?"')


def read_if_match(if_match: str | None, current: int) -> int | None:
    """Return the revision that If-Match names; None where any revision is accepted."""
    if if_match is None or if_match.strip() == "*":
        return None
    parts = _PARTS.findall(if_match) or [""]
    for part in parts:
        if not _TAG.fullmatch(part):
            raise _no_tag(part, current)
    named = [int(found[1]) for part in parts if (found := _REVISION.fullmatch(part))]
    if not named:
        weak = " Weak tags, with W/ before them, match nothing." if "W/" in if_match else ""
        raise StaleRevision(
            f"If-Match names no revision of this; it is at {current}.{weak}",
            hint="Read it again, and send the ETag of that answer.",
            revision=current,
        )
    return current if current in named else named[0]


class Revised(Protocol):
    @property
    def revision(self) -> int: ...


async def expecting(scope: Scope, if_match: str | None, read: Callable[[], Awaitable[Revised]]) -> Scope:
    """Return the scope for a change to the revision that If-Match names; the verb checks it again under its lock."""
    return scope if if_match is None else scope.expecting(read_if_match(if_match, (await read()).revision))


def matches_etag(if_none_match: str | None, current: str) -> bool:
    """Return whether If-None-Match names the current state."""
    if if_none_match is None:
        return False
    named = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return "*" in named or current in named


async def check_if_match(request: Request) -> None:
    """Refuse a write to a job whose revision is not the one that the caller has seen. The verbs check again under their lock."""
    if_match, found = request.headers.get("if-match"), read_id(request.path_params.get("job_id", ""))
    if if_match is None or found is None:
        return
    db, caller, job_id = request.app.state.database, request.state.caller, JobId(found)
    request.state.seen_revision = await require_revision(
        db, caller.scope, job_id, lambda current: read_if_match(if_match, current)
    )


async def remember_etag(request: Request) -> None:
    """Keep the job's ETag for the answer 412, in the same form as the answer to GET has it."""
    if (found := read_id(request.path_params.get("job_id", ""))) is not None:
        with suppress(FoliotError):  # gone meanwhile: the first error matters more
            db, caller = request.app.state.database, request.state.caller
            request.state.etag = etag(await job_search.job(db, caller.scope, JobId(found)))


def _no_tag(part: str, current: int) -> Invalid:
    named = repr(part[:60]) if part else "nothing"
    bare = part.isascii() and part.isdigit()
    return Invalid(
        f"If-Match holds {named}, which is no ETag: those are quoted.",
        pointer="/If-Match",
        hint=f'Send "{part[:9]}", with the quotes.'
        if bare
        else f'Send the ETag of an answer as it came, such as "{current}", or * for any.',
    )


async def _seen(
    request: Request, if_match: IfMatch = None
) -> int | None:  # a parameter, so that the description has it
    seen: int | None = getattr(request.state, "seen_revision", None)
    return seen


ExpectedRevision = Annotated[int | None, Depends(_seen)]  # the revision that If-Match names
