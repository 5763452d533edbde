"""Idempotency keys: the request that holds a key, the object it changed, and its stored response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict
from foliot.domain.ids import PrincipalId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key. The fingerprint distinguishes different requests with the same key."""

    principal_id: PrincipalId
    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


class IdempotencyRecord(NamedTuple):
    """The state of a key. Without `done_at` and `status` its request is under way, or died before it changed anything."""

    fingerprint: bytes
    done_at: datetime | None
    object_kind: str | None
    object_id: str | None
    status: int | None
    headers: Mapping[str, str] | None
    body: bytes | None

    @property
    def thing(self) -> tuple[str, str] | None:
        """Return kind and id of the changed object."""
        return (
            None if self.object_kind is None or self.object_id is None else (self.object_kind, self.object_id)
        )

    @property
    def has_ended(self) -> bool:
        """Return whether the request was answered; without an `answer` the response could not be stored."""
        return self.status is not None

    @property
    def answer(self) -> StoredResponse | None:
        if self.status is None or self.headers is None or self.body is None:
            return None
        return StoredResponse(self.status, self.headers, self.body)


async def acquire(
    tx: Tx, request: IdempotentRequest, holder_id: UUID, *, expired: datetime, abandoned: datetime
) -> bool:
    """Take the key for a request: a free one, one from before `expired`, or one idle since before `abandoned`."""
    params = {
        "principal_id": request.principal_id,
        "key": request.key,
        "fingerprint": request.fingerprint,
        "holder_id": holder_id,
        "expired": expired,
        "abandoned": abandoned,
    }
    return await tx.execute(sql.idempotency.acquire, params) == 1


async def load_record(tx: Tx, request: IdempotentRequest) -> IdempotencyRecord | None:
    params = {"principal_id": request.principal_id, "key": request.key}
    return await tx.fetch_one_as(IdempotencyRecord, sql.idempotency.load_record, params)


async def mark_done(tx: Tx, holder_id: UUID, thing: tuple[str, str]) -> None:
    """Record, in the transaction of the requested change, that it is done: from its commit on a repeat does not act."""
    kind, thing_id = thing
    params = {"holder_id": holder_id, "kind": kind, "id": thing_id}
    if await tx.execute(sql.idempotency.mark_done, params) != 1:
        raise _taken_over()


async def load_progress(tx: Tx, holder_id: UUID) -> dict[str, Any] | None:
    """Return the progress of earlier requests with this key that were done in parts."""
    progress: dict[str, Any] | None = await tx.fetch_one_as(
        dict, sql.idempotency.load_progress, {"holder_id": holder_id}
    )
    return progress


async def store_progress(tx: Tx, holder_id: UUID, progress: Mapping[str, Any]) -> None:
    """Record, in the transaction of a part, how far the request is: a repeat continues there. The last part calls `mark_done`."""
    params = {"holder_id": holder_id, "progress": Jsonb(dict(progress))}
    if await tx.execute(sql.idempotency.store_progress, params) != 1:
        raise _taken_over()


async def store_response(tx: Tx, holder_id: UUID, status: int, answer: StoredResponse | None) -> None:
    """Store the response; without `answer` only its status, for a response that must not be stored."""
    params = {
        "holder_id": holder_id,
        "status": status,
        "headers": None if answer is None else Jsonb(dict(answer.headers)),
        "body": None if answer is None else answer.body,
    }
    await tx.execute(sql.idempotency.store_response, params)


async def release(tx: Tx, holder_id: UUID) -> None:
    """Free the key unless something was done under it; wait for a commit that is under way.

    After a part of the request, the next request with the key continues behind it.
    """
    await tx.execute(sql.idempotency.release, {"holder_id": holder_id})


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    return await tx.execute(sql.idempotency.prune, {"before": before, "limit": limit})


def _taken_over() -> Conflict:
    return Conflict(
        "This took so long that another request with the same Idempotency-Key has taken over.",
        hint="Repeat it with the same key to get that one's answer.",
    )
