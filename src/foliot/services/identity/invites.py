"""Invites: a key that signs a member in once, and is then replaced by a lasting key of their own.

An invite is a key of the scope `invite`. It can do nothing but accept itself, so a list of keys shows it and a revocation ends it.
Why: docs/decisions/704-sessions-and-invites-are-keys.md
"""

from __future__ import annotations

from datetime import datetime, timedelta
from secrets import token_bytes

from foliot.domain.access import (
    INVITE,
    KEY_ENTROPY,
    ApiKey,
    KeyHolder,
    PrincipalKind,
    check_expiry,
    refuse_stronger,
)
from foliot.domain.errors import Conflict, Denied, Invalid, not_found
from foliot.domain.ids import KeyId, PrincipalId
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.services.identity.key_steps import CreatedKey, check_key_quota, lock_maker
from foliot.storage.identity import keys, members
from foliot.storage.identity.keys import StoredKey
from foliot.storage.tx import Database, Role

LASTS = timedelta(days=7)


async def create(
    database: Database, caller: Caller, principal_id: PrincipalId, expires_at: datetime | None
) -> CreatedKey:
    """Make an invite for a person of the workspace. It ends after a week, or with the key that makes it."""
    is_system = caller.holder.principal.is_system
    async with database.tx(Role.APP, caller.workspace_id, system=is_system) as tx:
        maker = await lock_maker(tx, caller.holder)
        found = await members.find(tx, principal_id)
        if found is None or found.principal.is_system:
            raise not_found("member")
        if not found.is_active:
            raise Conflict("This member is not active.", hint="Activate it first.")
        holder = found.principal
        if holder.kind is not PrincipalKind.USER:
            raise Invalid(
                "Only people are invited.", pointer="/member", hint="Make a key for an agent or a service."
            )
        if expires_at is None:
            expires_at = min(filter(None, (tx.now + LASTS, maker.expires_at)))
        check_expiry(maker, expires_at, tx.now)
        refuse_stronger(maker, KeyHolder(holder, maker.key_id, frozenset(), expires_at, budget=maker.budget))
        key, key_id = ApiKey.make(token_bytes(KEY_ENTROPY)), KeyId(tx.new_id())
        made = StoredKey(
            key_id, holder, f"Invite of {holder.name}"[:200], key.prefix, frozenset({INVITE}), expires_at,
            None, None, tx.now, maker.key_id,
        )  # fmt: skip
        await keys.insert_key(
            tx, key_id, key, holder, name=made.name, scopes=made.scopes, expires_at=expires_at, made_by=maker.key_id
        )  # fmt: skip
        await check_key_quota(tx, caller)
        after = {"key": str(key_id), "expires_at": expires_at.isoformat()}
        await append_audit(tx, "member.invited", ("member", holder.id), caller.actor, after=after)
        return CreatedKey(made, key.secret)


async def accept(database: Database, caller: Caller) -> CreatedKey:
    """Replace the presented invite by a key of the member's own. It ends with the key that made the invite."""
    invite_id, holder = caller.holder.key_id, caller.holder.principal
    async with database.tx(
        Role.APP, caller.workspace_id, system=True
    ) as tx:  # the maker may be the installation's
        await keys.lock_one(tx, invite_id)  # of two that accept it at once, the second finds it revoked
        if not await keys.revoke(tx, invite_id):
            raise Denied("This invite was used already.", hint="Ask for a new one.")
        maker = await keys.maker_of(tx, invite_id)
        if maker is None:
            raise Denied("The key that made this invite has ended.", hint="Ask for a new one.")
        key, key_id = ApiKey.make(token_bytes(KEY_ENTROPY)), KeyId(tx.new_id())
        made = StoredKey(
            key_id, holder, "Made by an invite", key.prefix, frozenset(), maker.expires_at, None, None,
            tx.now, invite_id,
        )  # fmt: skip
        await keys.insert_key(
            tx, key_id, key, holder, name=made.name, expires_at=maker.expires_at, made_by=invite_id
        )
        after = {"invite": str(invite_id), "key": str(key_id)}
        await append_audit(tx, "member.joined", ("member", holder.id), caller.actor, after=after)
        return CreatedKey(made, key.secret)
