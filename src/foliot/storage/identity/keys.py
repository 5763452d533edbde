"""API keys. Only the hash of a key is stored. A key names the key that created it, so a leaked one is revoked with all it created."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from foliot.domain.access import NO_BUDGET, ApiKey, KeyBudget, KeyHolder, Principal
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

TOUCH_AFTER = timedelta(minutes=1)  # last_used_at is for people: a write per request would be waste


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as lists show it, without its secret."""

    id: KeyId
    holder: Principal
    name: str
    prefix: str
    scopes: frozenset[str]
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    made_by: KeyId | None = None
    is_session: bool = False
    budget: KeyBudget = NO_BUDGET

    @property
    def as_presented(self) -> KeyHolder:
        """Return the permissions of a request that presents this key."""
        return KeyHolder(self.holder, self.id, self.scopes, self.expires_at, self.prefix, self.budget)


@dataclass(frozen=True, slots=True)
class KeyVisibility:
    """The keys that a caller sees: its own; an administrator the workspace's; a system key the installation's."""

    own: PrincipalId
    is_admin: bool
    is_system: bool


@dataclass(frozen=True, slots=True)
class PresentedKey:
    holder: KeyHolder
    last_used_at: datetime | None


class Maker(NamedTuple):
    """The key behind another: `id` is None for a session that no key opened."""

    id: KeyId | None
    expires_at: datetime | None


class _MadeKey(NamedTuple):
    id: KeyId
    workspace_id: WorkspaceId | None
    is_valid: bool


async def insert_key(
    tx: Tx,
    key_id: KeyId,
    key: ApiKey,
    holder: Principal,
    *,
    name: str,
    scopes: frozenset[str] = frozenset(),
    expires_at: datetime | None = None,
    made_by: KeyId | None = None,
    is_session: bool = False,
    budget: KeyBudget = NO_BUDGET,
) -> None:
    params = {
        "id": key_id,
        "workspace_id": holder.workspace_id,
        "principal_id": holder.id,
        "name": name,
        "prefix": key.prefix,
        "key_hash": key.hash,
        "scopes": sorted(scopes),
        "expires_at": expires_at,
        "made_by": made_by,
        "is_session": is_session,
        "max_jobs": budget.max_jobs,
        "min_interval": budget.min_interval,
    }
    await tx.execute(sql.keys.insert, params)


async def find_presented(tx: Tx, key_hash: bytes) -> PresentedKey | None:
    """Find the valid key with this hash. The transaction must have been opened with the hash."""
    return await tx.fetch_one_as(PresentedKey, sql.keys.find_presented, {"key_hash": key_hash})


async def touch(tx: Tx, key_hash: bytes) -> None:
    """Record a use, at most once a minute. The transaction must have been opened with the hash."""
    await tx.execute(sql.keys.touch, {"key_hash": key_hash, "before": tx.now - TOUCH_AFTER})


async def page(
    tx: Tx,
    visible: KeyVisibility,
    *,
    key_id: KeyId | None = None,
    principal_id: PrincipalId | None = None,
    is_revoked: bool | None = None,
    before: KeyId | None = None,
    limit: int = 1,
) -> list[StoredKey]:
    """List keys, newest first."""
    params = {
        "own": visible.own,
        "is_admin": visible.is_admin,
        "is_system": visible.is_system,
        "id": key_id,
        "principal_id": principal_id,
        "is_revoked": is_revoked,
        "before": before,
        "limit": limit,
    }
    return await tx.fetch_as(StoredKey, sql.keys.page, params)


async def lock(tx: Tx, key_id: KeyId, visible: KeyVisibility) -> StoredKey | None:
    """Lock the key, then read it: it may have changed while the lock was waited for."""
    await tx.execute(sql.keys.lock, {"id": key_id})
    return next(iter(await page(tx, visible, key_id=key_id)), None)


async def change(
    tx: Tx, key_id: KeyId, *, name: str, scopes: Iterable[str], expires_at: datetime | None
) -> None:
    params = {"id": key_id, "name": name, "scopes": sorted(scopes), "expires_at": expires_at}
    await tx.execute(sql.keys.update, params)


async def revoke(tx: Tx, key_id: KeyId) -> bool:
    """Revoke the key and return whether it was unrevoked before."""
    return await tx.execute(sql.keys.revoke, {"id": key_id}) > 0


async def count_valid(tx: Tx) -> int:
    """Count the valid keys of the transaction's workspace."""
    return await tx.fetch_value(int, sql.keys.count_valid)


async def revoke_of_principal(tx: Tx, principal_id: PrincipalId) -> int:
    return await tx.execute(sql.keys.revoke_of_principal, {"principal_id": principal_id})


async def revoke_of_workspace(tx: Tx, workspace_id: WorkspaceId) -> int:
    return await tx.execute(sql.keys.revoke_of_workspace, {"workspace_id": workspace_id})


async def lock_maker(tx: Tx, key_id: KeyId) -> bool:
    """Check that this key may create others, and keep it from being revoked until the transaction ends."""
    return bool(await tx.fetch_one_as(bool, sql.keys.lock_maker, {"id": key_id}))


async def session_maker(tx: Tx, key_id: KeyId) -> Maker | None:
    """Return the key that a session was opened with; None for a key that is no session."""
    return await tx.fetch_one_as(Maker, sql.keys.session_maker, {"id": key_id})


async def maker_of(tx: Tx, key_id: KeyId) -> Maker | None:
    """Return the key that made this one, if it is still valid."""
    return await tx.fetch_one_as(Maker, sql.keys.maker_of, {"id": key_id})


async def lock_one(tx: Tx, key_id: KeyId) -> None:
    await tx.execute(sql.keys.lock, {"id": key_id})


async def count_valid_family(tx: Tx, key_id: KeyId) -> int:
    """Count the valid keys created with this one, with those, and so on."""
    found, makers = 0, [key_id]
    while makers:
        made = await _list_made_by(tx, makers)
        found += sum(key.is_valid for key in made)
        makers = [key.id for key in made]
    return found


async def lock_family(tx: Tx, key_id: KeyId) -> list[StoredKey]:
    """Lock every key of the family, makers first. The caller has locked the first: a locked key creates no other."""
    found: list[StoredKey] = []
    makers = [key_id]
    while makers:
        by_workspace: defaultdict[WorkspaceId | None, list[KeyId]] = defaultdict(list)
        for key in await _list_made_by(tx, makers):
            by_workspace[key.workspace_id].append(key.id)
        for workspace_id in sorted(by_workspace, key=str):
            async with tx.within(workspace_id or tx.workspace_id):
                found += await tx.fetch_as(StoredKey, sql.keys.lock_made, {"ids": by_workspace[workspace_id]})
        makers = [key_id for ids in by_workspace.values() for key_id in ids]
    return found


async def _list_made_by(tx: Tx, makers: Sequence[KeyId]) -> list[_MadeKey]:
    await tx.execute(sql.keys.set_makers, {"makers": list(makers)})
    return await tx.fetch_as(_MadeKey, sql.keys.list_made_by, {"makers": list(makers)})
