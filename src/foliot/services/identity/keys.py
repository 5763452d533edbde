"""API keys: create, list, narrow and revoke them. No key can create a stronger key.

Why: docs/decisions/701-keys-only-lose-rights.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from secrets import token_bytes
from typing import Any
from uuid import UUID

from foliot.domain.access import (
    KEY_ENTROPY,
    NO_BUDGET,
    ApiKey,
    KeyBudget,
    KeyHolder,
    Permission,
    Principal,
    check_expiry,
    check_narrower,
    check_scopes,
    check_sooner,
    is_within,
    refuse_stronger,
)
from foliot.domain.errors import Conflict, Denied, Invalid, not_found, require_found
from foliot.domain.ids import KeyId, PrincipalId
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.services.identity.key_steps import CreatedKey, check_key_quota, lock_maker
from foliot.storage.identity import keys, members
from foliot.storage.identity.keys import KeyVisibility, StoredKey
from foliot.storage.tx import Database, Role, Tx

__all__ = ["CreatedKey", "StoredKey"]


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key to create. Without a principal: for the caller. Without scopes: those of the calling key, or the full role of another holder."""

    name: str
    principal_id: PrincipalId | None = None
    scopes: Iterable[str] | None = None
    expires_at: datetime | None = None
    is_session: bool = False  # a sign-in: it stands for the calling key
    budget: KeyBudget = NO_BUDGET


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """The fields to change. `expires` says whether `expires_at` was given."""

    name: str | None = None
    scopes: Iterable[str] | None = None
    expires_at: datetime | None = None
    expires: bool = False


@dataclass(frozen=True, slots=True)
class RevokedKeys:
    """`made_valid` counts the valid keys that this key created, directly or not; `made_too` are those revoked with it."""

    key: StoredKey
    made_valid: int = 0
    made_too: tuple[StoredKey, ...] = ()


async def create(database: Database, caller: Caller, wanted: KeyRequest) -> CreatedKey:
    async with _open(database, caller) as tx:
        maker = await lock_maker(tx, caller.holder)
        caller = await _with_current_role(tx, caller)
        holder = await _holder(tx, caller, wanted.principal_id)
        is_own = holder.id == caller.holder.principal.id
        scopes = check_scopes(holder, _asked(wanted.scopes, caller.holder.scopes if is_own else ()))
        expires_at = wanted.expires_at
        if expires_at is None:  # no key makes one that outlives it, for its holder or for another
            expires_at = maker.expires_at
        check_expiry(maker, expires_at, tx.now)
        if wanted.is_session and expires_at is None:
            raise Invalid("A session ends.", pointer="/expires_at", hint="Say when.")
        if wanted.budget != NO_BUDGET and not holder.is_agent:
            raise Invalid(
                "Only keys of agents have a budget.",
                pointer="/max_jobs" if wanted.budget.max_jobs is not None else "/min_interval",
                hint="A workspace has quotas for everybody in it.",
            )
        budget = wanted.budget.narrowed(maker.budget)
        key, key_id = ApiKey.make(token_bytes(KEY_ENTROPY)), KeyId(tx.new_id())
        refuse_stronger(caller.holder, KeyHolder(holder, key_id, scopes, expires_at, budget=budget))
        await keys.insert_key(
            tx, key_id, key, holder, name=wanted.name, scopes=scopes, expires_at=expires_at, made_by=maker.key_id,
            is_session=wanted.is_session, budget=budget,
        )  # fmt: skip
        await check_key_quota(tx, caller)
        made = StoredKey(
            key_id, holder, wanted.name, key.prefix, scopes, expires_at, None, None, tx.now, maker.key_id,
            wanted.is_session, budget,
        )  # fmt: skip
        after = {**_audit_fields(made), "prefix": key.prefix, "principal": str(holder.id)}
        await append_audit(tx, "key.created", ("key", key_id), caller.actor, after=after)
        return CreatedKey(made, key.secret)


async def listed(
    database: Database,
    caller: Caller,
    *,
    principal_id: PrincipalId | None = None,
    is_revoked: bool | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[StoredKey]:
    """List the caller's keys, or for an administrator all keys of the workspace, newest first."""
    before = read_cursor(cursor, UUID)
    async with _open(database, caller) as tx:
        found = await keys.page(
            tx,
            _seen(caller),
            principal_id=principal_id,
            is_revoked=is_revoked,
            before=None if before is None else KeyId(*before),
            limit=limit + 1,
        )
    return cut_page(found, limit, lambda last: [last.id])


async def get(database: Database, caller: Caller, key_id: KeyId) -> StoredKey:
    async with _open(database, caller) as tx:
        found = await keys.page(tx, _seen(caller), key_id=key_id)
        if not found:
            raise not_found("key")
        return found[0]


async def change(database: Database, caller: Caller, key_id: KeyId, wanted: KeyChanges) -> StoredKey:
    """Rename the key, end it earlier, or reduce its scopes."""
    async with _open(database, caller) as tx:
        before = await _take(tx, caller, key_id)
        if before.revoked_at is not None:
            raise Conflict("This key is revoked.", hint="Make a new one.")
        after = before
        if wanted.name is not None:
            after = replace(after, name=wanted.name)
        if wanted.scopes is not None:
            after = replace(after, scopes=check_scopes(before.holder, wanted.scopes))
            check_narrower(before.as_presented, after.as_presented)
        if wanted.expires:
            check_sooner(before.expires_at, wanted.expires_at, tx.now)
            after = replace(after, expires_at=wanted.expires_at)
        if after != before:
            await keys.change(tx, key_id, name=after.name, scopes=after.scopes, expires_at=after.expires_at)
            await append_audit(
                tx,
                "key.changed",
                ("key", key_id),
                caller.actor,
                before=_audit_fields(before),
                after=_audit_fields(after),
            )
        return after


async def revoke(database: Database, caller: Caller, key_id: KeyId, *, made_too: bool = False) -> RevokedKeys:
    """Revoke the key for good, on all nodes within seconds; with `made_too` also every key that it created, directly or not.
    A second call changes nothing.
    """
    async with _open(database, caller) as tx:
        before = await _take(tx, caller, key_id)
        family = await keys.lock_family(tx, key_id) if made_too else []
        _check_family(caller, family)
        ended = [await _end(tx, caller, each) for each in (before, *family) if each.revoked_at is None]
        valid = 0 if made_too else await keys.count_valid_family(tx, key_id)
        key = before if before.revoked_at is not None else ended[0]
        return RevokedKeys(key, valid, tuple(each for each in ended if each.id != key_id))


async def _end(tx: Tx, caller: Caller, key: StoredKey) -> StoredKey:
    """Write the audit entry to the workspace of the key's holder."""
    async with tx.within(key.holder.workspace_id or tx.workspace_id):
        await keys.revoke(tx, key.id)
        before = {**_audit_fields(key), "prefix": key.prefix, "principal": str(key.holder.id)}
        await append_audit(tx, "key.revoked", ("key", key.id), caller.actor, before=before)
    return replace(key, revoked_at=tx.now)


def _check_family(caller: Caller, family: Iterable[StoredKey]) -> None:
    """A key never creates a stronger one, but the role of a holder may have grown since."""
    seen = _seen(caller)
    for each in family:
        is_theirs = seen.is_admin or each.holder.id == seen.own
        if not (is_theirs and is_within(caller.holder, each.as_presented)):
            raise Denied(
                "One of the keys made with it has more rights than the key you use.",
                hint="Use a key with at least those rights, or revoke this one alone.",
            )


def _open(database: Database, caller: Caller) -> AbstractAsyncContextManager[Tx]:
    """Open a transaction that sees keys of the installation only for its own administrators."""
    return database.tx(Role.APP, caller.workspace_id, system=caller.holder.principal.is_system)


def _seen(caller: Caller) -> KeyVisibility:
    holder = caller.holder
    return KeyVisibility(holder.principal.id, holder.may(Permission.ADMIN), holder.may(Permission.SYSTEM))


def _asked(scopes: Iterable[str] | None, otherwise: Iterable[str]) -> Iterable[str]:
    return otherwise if scopes is None else scopes


async def _with_current_role(tx: Tx, caller: Caller) -> Caller:
    """Return the caller with the role that it has now: the cache may know the one before a demotion on another node."""
    found = await members.find(tx, caller.holder.principal.id)
    if found is None or not found.is_active:
        raise Denied("The holder of this key is not active.", hint="Ask an administrator.")
    return replace(caller, holder=replace(caller.holder, principal=found.principal))


async def _holder(tx: Tx, caller: Caller, principal_id: PrincipalId | None) -> Principal:
    own = caller.holder.principal
    if principal_id is None or principal_id == own.id:
        return own
    if not caller.holder.may(Permission.ADMIN):
        raise Denied(
            "Only administrators make keys for others.", hint="Leave principal out to make one for yourself."
        )
    found = await members.find(tx, principal_id)
    if found is None or (found.principal.is_system and not caller.holder.may(Permission.SYSTEM)):
        raise Invalid(
            "There is no such member.", pointer="/principal", hint="List the members to see their ids."
        )
    if not found.is_active:
        raise Conflict("This member is not active.", pointer="/principal", hint="Activate it first.")
    return found.principal


async def _take(tx: Tx, caller: Caller, key_id: KeyId) -> StoredKey:
    """Lock the key. A weak key must not revoke a stronger one of the same holder: a thief could use it so."""
    found = require_found(await keys.lock(tx, key_id, _seen(caller)), "key")
    if found.id != caller.holder.key_id and not is_within(caller.holder, found.as_presented):
        raise Denied(
            "This key has more rights than the key you use.", hint="Use a key with at least those rights."
        )
    return found


def _audit_fields(key: StoredKey) -> Mapping[str, Any]:
    return {
        "name": key.name,
        "scopes": sorted(key.scopes),
        "expires_at": key.expires_at and key.expires_at.isoformat(),
        **{name: value for name, value in asdict(key.budget).items() if value is not None},
    }
