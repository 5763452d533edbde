"""Idempotency keys: a repeated request is done once and gets the same answer.

A request claims its key before it does anything. The verb closes the claim in its own transaction, with its audit entry. A
process may therefore die anywhere: a repeat either does the work for the first time or learns that it is done.

Why: docs/decisions/603-idempotency-keys.md
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from foliot.domain.errors import AnswerLost, KeyInUse, KeyReused
from foliot.domain.ids import WorkspaceId
from foliot.storage.identity import idempotency
from foliot.storage.identity.idempotency import IdempotencyRecord, IdempotentRequest, StoredResponse
from foliot.storage.tx import Database, Role

__all__ = ["IdempotencyRecord", "IdempotentRequest", "StoredResponse"]

KEPT = timedelta(hours=24)
GIVEN_UP = timedelta(
    minutes=1
)  # after that a request without a result counts as dead; if it wakes, it cannot commit
WRITING = timedelta(
    seconds=5
)  # the answer follows the commit within milliseconds; after that it will not come
FORGOTTEN_AT_ONCE = 5_000


async def begin(
    database: Database, workspace_id: WorkspaceId, asked: IdempotentRequest
) -> UUID | IdempotencyRecord:
    """Claim the key. Return the claim, or the record of the same request that was done before."""
    # Relaxed: a claim that a crash loses has done nothing yet.
    async with database.tx(Role.APP, workspace_id, relaxed=True) as tx:
        claim_id = tx.new_id()
        limits = {"expired": tx.now - KEPT, "abandoned": tx.now - GIVEN_UP}
        if await idempotency.acquire(tx, asked, claim_id, **limits):
            return claim_id
        held = await idempotency.load_record(tx, asked)
    if held is not None and held.fingerprint != asked.fingerprint:
        raise KeyReused(
            "This Idempotency-Key came with another request before.",
            hint="Use a new key for a new request; the same key repeats the same one.",
        )
    if held is not None and held.has_ended:
        return held
    if held is not None and held.done_at is not None and held.done_at <= tx.now - WRITING:
        return held
    raise KeyInUse("A request with this Idempotency-Key is still under way.", hint="Repeat it in a moment.")


async def finish(
    database: Database, workspace_id: WorkspaceId, claim_id: UUID, status: int, answer: StoredResponse | None
) -> None:
    """Store the answer. None: the answer must not be stored, and a repeat need not wait for it."""
    async with database.tx(Role.APP, workspace_id, relaxed=True) as tx:
        await idempotency.store_response(tx, claim_id, status, answer)


async def release(database: Database, workspace_id: WorkspaceId, claim_id: UUID) -> None:
    """Release the key after a refusal or failure, when nothing was done."""
    async with database.tx(Role.APP, workspace_id, relaxed=True) as tx:
        await idempotency.release(tx, claim_id)


async def forget_old(database: Database, limit: int = FORGOTTEN_AT_ONCE) -> int:
    async with database.tx(Role.ENGINE) as tx:
        return await idempotency.prune(tx, tx.now - KEPT, limit)


def lost(held: IdempotencyRecord) -> AnswerLost:
    kind, thing_id = held.thing or ("", "")
    thing = f" ({kind} {thing_id})" if kind else ""
    return AnswerLost(
        f"This was done already{thing}, and is not done again; its answer is not stored.",
        hint="A key's secret was only in that answer. If it is lost, revoke the key and make another."
        if kind == "key"
        else "Read the object to see its present state.",
    )
