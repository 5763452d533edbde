"""/batch: several writes in one transaction. All of them are kept, or none; the answer names everything that is wrong.

Each write is a call of its own route with a staged database, so it passes the same permissions and checks as a request of
its own.

Why: docs/decisions/608-batches.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from foliot.domain.errors import FoliotError, Invalid, Unavailable
from foliot.services import Database
from foliot.services.dry_run import apply_together
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.web.api.writes import Writing
from foliot.web.auth import Editor
from foliot.web.errors import field_problems
from foliot.web.internal_calls import ApiAnswer, RouteCall, call_route
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router, max_body_size
from foliot.wire.batch import BatchIn, BatchOut, BatchResult, BatchWrite
from foliot.wire.instants import read_id

routes = api_router("batch")
NO_ROUTE = (404, 405)
LARGEST_BATCH = 16 << 20  # bytes


@routes.post("/batch", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
@max_body_size(LARGEST_BATCH)
async def apply_batch(batch: BatchIn, caller: Editor, request: Request, write: Writing) -> BatchOut:
    """Write jobs, calendars, limits and rooms together: if one write is refused, none is kept.

    Write in the order of dependence: calendars before the jobs that use them. Pointers of errors begin with `/writes/<number>`.
    Jobs in the answer have no `warnings`; `GET /jobs/{job_id}?warnings=true` finds them.
    """
    hints: list[Hint] = []

    async def verbs(stage: Database) -> list[BatchResult]:
        return await _Batch(request, caller, stage, hints.append).apply(batch.writes)

    items = await apply_together(write.db, caller.workspace_id, verbs, keep=not write.dry_run)
    if not write.dry_run:
        write.announce(*dict.fromkeys(hints))
    return BatchOut(applied=not write.dry_run, items=items)


@dataclass(slots=True)
class _Batch:
    request: Request
    caller: Caller
    stage: Database
    announce: Callable[[Hint], None]
    ids: dict[str, str] = field(default_factory=dict)  # by ref
    failed_refs: set[str] = field(default_factory=set)

    async def apply(self, writes: list[BatchWrite]) -> list[BatchResult]:
        """Try every write, so that all errors are known at once. Leave out those that refer to a refused one."""
        items: list[BatchResult] = []
        problems: list[FoliotError] = []
        for number, write in enumerate(writes):
            filled = _Filled(self.ids, self.failed_refs)
            path, body = filled.path(write.path), filled.value(write.body)
            if filled.is_incomplete:
                self.failed_refs |= {write.ref} if write.ref else set()
                continue
            try:
                answer = await self._call(write, path, body, is_first=number == 0)
            except Unavailable:
                raise
            except (FoliotError, RequestValidationError, HTTPException) as error:
                problems.append(_placed(error, number))
                self.failed_refs |= {write.ref} if write.ref else set()
                continue
            found = answer.data.get("id") if isinstance(answer.data, dict) else None
            if write.ref is not None and found is not None:
                self.ids[write.ref] = str(found)
            items.append(BatchResult(status=answer.status, id=read_id(str(found)), body=answer.data or None))
        if problems:
            raise _summary(problems)
        return items

    async def _call(self, write: BatchWrite, path: str, body: Any, *, is_first: bool) -> ApiAnswer:
        """Call the route with the staged database; hints are announced after the commit."""
        # The first write closes the claim of the Idempotency-Key: one transaction, one claim.
        caller = self.caller if is_first else replace(self.caller, claim=None)
        call = RouteCall(write.method, path, body, write.if_match)
        return await call_route(
            self.request, call, caller, {"database": self.stage, "announce": self.announce}
        )


@dataclass(slots=True)
class _Filled:
    """Replaces refs by ids. `is_incomplete` says that a write with one of the refs was refused."""

    ids: Mapping[str, str]
    failed: set[str]
    is_incomplete: bool = False

    def value(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("@"):
            self.is_incomplete = self.is_incomplete or value in self.failed
            return self.ids.get(value, value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {name: self.value(each) for name, each in value.items()}
        return value

    def path(self, path: str) -> str:
        front, mark, query = path.partition("?")
        return "/".join(self.value(part) for part in front.split("/")) + mark + query


def _placed(error: FoliotError | RequestValidationError | HTTPException, number: int) -> FoliotError:
    """Return the error with pointers that begin with the number of the write."""
    where = f"/writes/{number}"
    if isinstance(error, RequestValidationError):
        found = field_problems(error.errors())
        parts = tuple(
            Invalid(each["message"], pointer=f"{where}/body{each['pointer']}", hint=each["hint"])
            for each in found
        )
        return Invalid(parts[0].message, parts=parts)
    if isinstance(error, HTTPException):
        if error.status_code in NO_ROUTE:
            return Invalid(
                "This is not a write that a batch takes.", pointer=where, hint="See method and path."
            )
        return Invalid(str(error.detail), pointer=where)
    several = error.parts or (error,)
    error.parts = tuple(_moved(each, where) for each in several)
    return error


def _moved(error: FoliotError, where: str) -> FoliotError:
    return Invalid(
        error.message, hint=error.hint, pointer=f"{where}/body{error.pointer}" if error.pointer else where
    )


def _summary(problems: list[FoliotError]) -> FoliotError:
    """Return one error with all parts, of the kind that all of them have."""
    parts = tuple(part for each in problems for part in each.parts or (each,))
    if len(problems) == 1:
        problems[0].parts = parts
        return problems[0]
    return Invalid(f"{len(problems)} writes are refused. Nothing was done.", parts=parts)
