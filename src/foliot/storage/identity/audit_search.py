"""The audit as people look through it, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.domain.ids import KeyId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class TrailFilter:
    actor: str | None = None
    action: str | None = None  # whole, or the noun before its dot
    object_kind: str | None = None
    object_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entry:
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


async def page(tx: Tx, wanted: TrailFilter, before: tuple[datetime, UUID] | None, limit: int) -> list[Entry]:
    """Of the transaction's workspace; without one, of the installation itself."""
    before_at, before_id = before or (None, None)
    params = {
        "workspace_id": tx.workspace_id,
        "actor": wanted.actor,
        "action": wanted.action,
        "object_kind": wanted.object_kind,
        "object_id": wanted.object_id,
        "since": wanted.since,
        "until": wanted.until,
        "before_at": before_at,
        "before_id": before_id,
        "limit": limit,
    }
    return [Entry(**row) for row in await tx.fetch(sql.audit.page, params)]
