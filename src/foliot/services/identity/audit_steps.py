"""Write an audit entry within the transaction that makes the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.domain.access import Actor
from foliot.storage.identity import audit
from foliot.storage.identity.audit import AuditEntry
from foliot.storage.tx import Tx


async def append_audit(
    tx: Tx,
    action: str,
    thing: tuple[str, object],
    by: Actor,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Append an entry: the actor, the action, and the thing it changed."""
    kind, thing_id = thing
    entry = AuditEntry(action, kind, str(thing_id), by, before=before, after=after)
    await audit.append(tx, tx.new_id(), entry)
