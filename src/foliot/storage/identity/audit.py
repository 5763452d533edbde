"""The audit. A verb appends its entry in its own transaction, which also marks its Idempotency-Key as done; entries never change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.access import Actor
from foliot.domain.ids import KeyId
from foliot.storage.identity import idempotency
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
    before = None if entry.before is None else Jsonb(entry.before)
    params = _params(tx, entry) | {"id": entry_id, "object_id": entry.object_id, "before": before}
    await tx.execute(sql.audit.append, params)
    await _mark_done(tx, entry)


async def append_many(tx: Tx, ids: Sequence[UUID], entries: Sequence[AuditEntry]) -> None:
    """Append entries of one action by one actor, which differ in their object and its earlier state."""
    if entries:
        differing = {
            "ids": list(ids),
            "object_ids": [entry.object_id for entry in entries],
            "before": [None if entry.before is None else json.dumps(entry.before) for entry in entries],
        }
        await tx.execute(sql.audit.append_many, _params(tx, entries[0]) | differing)
        await _mark_done(tx, entries[0])


async def _mark_done(tx: Tx, entry: AuditEntry) -> None:
    """Mark the request's Idempotency-Key as done: a repeat does not act again."""
    if entry.by.claim is not None:
        await idempotency.mark_done(tx, entry.by.claim, (entry.object_kind, entry.object_id))


def _params(tx: Tx, entry: AuditEntry) -> dict[str, Any]:
    return {
        "workspace_id": tx.workspace_id,  # None: of the installation
        "actor": entry.by.name,
        "key_id": entry.by.key_id,
        "address": entry.by.address,
        "action": entry.action,
        "object_kind": entry.object_kind,
        "after": None if entry.after is None else Jsonb(entry.after),
        "request_id": entry.by.request_id,
    }


@dataclass(frozen=True, slots=True)
class AuditFilter:
    actor: str | None = None
    action: str | None = None  # an action, or the noun before its dot
    object_kind: str | None = None
    object_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    id: UUID
    at: datetime
    actor: str
    actor_name: str | None
    actor_kind: str | None
    key_id: KeyId | None
    address: str | None
    action: str
    object_kind: str
    object_id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    request_id: str | None


async def list_records(
    tx: Tx, filters: AuditFilter, before: tuple[datetime, UUID] | None, limit: int
) -> list[AuditRecord]:
    """List the audit of the transaction's workspace, or of the installation, newest first."""
    before_at, before_id = before or (None, None)
    params = {
        "actor": filters.actor,
        "action": filters.action,
        "object_kind": filters.object_kind,
        "object_id": filters.object_id,
        "since": filters.since,
        "until": filters.until,
        "before_at": before_at,
        "before_id": before_id,
        "limit": limit,
    }
    return await tx.fetch_as(AuditRecord, sql.audit.page, params)
