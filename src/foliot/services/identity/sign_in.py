"""Open a session for a member whom another proof than a key has identified."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from secrets import token_bytes

from foliot.domain.access import KEY_ENTROPY, Actor, ApiKey
from foliot.domain.ids import KeyId
from foliot.services.identity.audit_steps import append_audit
from foliot.storage.identity import keys, members, workspaces
from foliot.storage.tx import Database, Role


@dataclass(frozen=True, slots=True)
class Visitor:
    """The connection that a session is opened for, as the audit names it."""

    address: str | None = None
    request_id: str | None = None


async def open_session_by_email(
    database: Database, slug: str, email: str, lasts: timedelta, visitor: Visitor
) -> str | None:
    """Return the secret of a new session of the active person with this address; None where the workspace has none."""
    async with database.tx(Role.APP, None, system=True) as tx:
        workspace = await workspaces.find_by_slug(tx, slug)
    if workspace is None or workspace.archived_at is not None:
        return None
    async with database.tx(Role.APP, workspace.id) as tx:
        holder = await members.find_person(tx, email)
        if holder is None:
            return None
        key, key_id = ApiKey.make(token_bytes(KEY_ENTROPY)), KeyId(tx.new_id())
        await keys.insert_key(
            tx, key_id, key, holder, name="Console session", expires_at=tx.now + lasts, is_session=True
        )
        actor = Actor(str(holder.id), key_id, visitor.address, visitor.request_id)
        after = {"key": str(key_id), "by": "openid"}
        await append_audit(tx, "member.signed_in", ("member", holder.id), actor, after=after)
        return key.secret
