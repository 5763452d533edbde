"""Idempotency keys: which request holds one, what was done under it, and what was answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict
from foliot.domain.ids import PrincipalId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key. The fingerprint tells it from other requests that come with the same one."""

    principal_id: PrincipalId
    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """What is known of a key. Neither done nor answered: its request is under way, or died before it did anything."""

    fingerprint: bytes
    done_at: datetime | None
    thing: tuple[str, str] | None  # (kind, id)
    answer: StoredResponse | None
    has_ended: bool = False  # it was answered; where there is no `answer`, that could not be kept


async def acquire(
    tx: Tx, asked: IdempotentRequest, claim_id: UUID, *, forgotten: datetime, given_up: datetime
) -> bool:
    """Whether the key is this request's now: nobody had it, or who had it was `forgotten` or `given_up` on by then."""
    params = {
        "workspace_id": tx.workspace_id,
        "principal_id": asked.principal_id,
        "key": asked.key,
        "fingerprint": asked.fingerprint,
        "claim": claim_id,
        "now": tx.now,
        "forgotten": forgotten,
        "given_up": given_up,
    }
    return await tx.execute(sql.idempotency.claim, params) == 1


async def load_record(tx: Tx, asked: IdempotentRequest) -> IdempotencyRecord | None:
    params = {"workspace_id": tx.workspace_id, "principal_id": asked.principal_id, "key": asked.key}
    row = await tx.fetch_one(sql.idempotency.held, params)
    if row is None:
        return None
    has_ended = row["status"] is not None
    answer = None
    if has_ended and row["body"] is not None:
        answer = StoredResponse(row["status"], row["headers"], bytes(row["body"]))
    thing = None if row["object_id"] is None else (row["object_kind"], row["object_id"])
    return IdempotencyRecord(bytes(row["fingerprint"]), row["done_at"], thing, answer, has_ended)


async def mark_done(tx: Tx, claim_id: UUID, thing: tuple[str, str]) -> None:
    """In the transaction that does what was asked for: from its commit on, nobody does it again."""
    kind, thing_id = thing
    params = {"claim": claim_id, "kind": kind, "id": thing_id, "now": tx.now}
    if await tx.execute(sql.idempotency.close, params) != 1:
        raise _taken_over()


async def load_progress(tx: Tx, claim_id: UUID) -> dict[str, Any] | None:
    """How far what was asked for had come under this key, where it is done in pieces."""
    row = await tx.fetch_one(sql.idempotency.progress, {"claim": claim_id})
    return None if row is None else row["progress"]


async def store_progress(tx: Tx, claim_id: UUID, progress: Mapping[str, Any]) -> None:
    """In the transaction of a piece: a repeat goes on behind it. `mark_done` belongs to the last one."""
    params = {"claim": claim_id, "progress": Jsonb(dict(progress)), "now": tx.now}
    if await tx.execute(sql.idempotency.advance, params) != 1:
        raise _taken_over()


async def store_response(tx: Tx, claim_id: UUID, status: int, answer: StoredResponse | None) -> None:
    """Without an `answer` only that there was one: it is not for keeping."""
    params = {
        "claim": claim_id,
        "status": status,
        "headers": None if answer is None else Jsonb(dict(answer.headers)),
        "body": None if answer is None else answer.body,
    }
    await tx.execute(sql.idempotency.answered, params)


async def release(tx: Tx, claim_id: UUID) -> None:
    """The key may be used anew, unless something was done under it. Waits for a commit that is under way.

    Where only some pieces were done, the next request with the key goes on behind them.
    """
    await tx.execute(sql.idempotency.release, {"claim": claim_id})


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    return await tx.execute(sql.idempotency.forget, {"before": before, "limit": limit})


def _taken_over() -> Conflict:
    return Conflict(
        "This took so long that another request with the same Idempotency-Key has taken over.",
        hint="Repeat it with the same key to get that one's answer.",
    )
