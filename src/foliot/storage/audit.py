"""The audit: entries are appended in the transaction that does the thing, and never change. An entry closes the claim it is made under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.access import Actor
from foliot.storage import idempotency
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class AuditEntry:
    action: str  # noun.past_verb
    object_kind: str
    object_id: str
    by: Actor
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


async def append(tx: Tx, entry_id: UUID, entry: AuditEntry) -> None:
    params = {
        "workspace_id": tx.workspace_id,
        "id": entry_id,
        "now": tx.now,
        "actor": entry.by.name,
        "key_id": entry.by.key_id,
        "address": entry.by.address,
        "action": entry.action,
        "object_kind": entry.object_kind,
        "object_id": entry.object_id,
        "before": None if entry.before is None else Jsonb(entry.before),
        "after": None if entry.after is None else Jsonb(entry.after),
        "request_id": entry.by.request_id,
    }
    await tx.execute(sql.audit.append, params)
    if entry.by.claim is not None:
        await idempotency.close(tx, entry.by.claim, (entry.object_kind, entry.object_id))
