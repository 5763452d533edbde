"""Principals and their API keys as rows. Of a key only the hash is ever written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.access import ApiKey, KeyHolder, MemberRole, Principal, PrincipalKind
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx

TOUCH_AFTER = timedelta(
    minutes=1
)  # last_used_at is for people; writing it on every request would be for nobody


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as people see it in a list: all but the secret, which is kept nowhere."""

    id: KeyId
    holder: Principal
    is_holder_active: bool
    name: str
    prefix: str
    scopes: frozenset[str]
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    made_by: KeyId | None = None

    @property
    def as_presented(self) -> KeyHolder:
        """What whoever comes with it may do."""
        return KeyHolder(self.holder, self.id, self.scopes, self.expires_at, self.prefix)


@dataclass(frozen=True, slots=True)
class KeyVisibility:
    """Which keys somebody may see: their own; those of the workspace; those of the installation."""

    own: PrincipalId
    is_admin: bool
    is_system: bool


@dataclass(frozen=True, slots=True)
class PresentedKey:
    holder: KeyHolder
    last_used_at: datetime | None


async def insert_principal(tx: Tx, principal: Principal, *, email: str | None = None) -> None:
    params = {
        "id": principal.id,
        "workspace_id": principal.workspace_id,
        "kind": principal.kind.value,
        "name": principal.name,
        "email": email,
        "role": principal.role.value,
        "now": tx.now,
    }
    await tx.execute(sql.members.insert, params)


async def system_principal_exists(tx: Tx) -> bool:
    row = await tx.fetch_one(sql.members.system_exists)
    return row is not None and bool(row["so"])


async def revive_system_principal(tx: Tx, name: str) -> Principal | None:
    """The administrator of this name, active again if it had been switched off."""
    row = await tx.fetch_one(sql.members.system_by_name, {"name": name})
    if row is None:
        return None
    if not row["active"]:
        await tx.execute(sql.members.activate, {"id": row["id"]})
    return _principal(row)


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
        "now": tx.now,
    }
    await tx.execute(sql.keys.insert, params)


async def find_presented(tx: Tx, key_hash: bytes) -> PresentedKey | None:
    """Whose key this is, while it is valid. The transaction must have been opened with the key's hash."""
    row = await tx.fetch_one(sql.keys.find_presented, {"key_hash": key_hash, "now": tx.now})
    if row is None:
        return None
    holder = KeyHolder(
        _principal(row), row["key_id"], frozenset(row["scopes"]), row["expires_at"], row["prefix"]
    )
    return PresentedKey(holder, row["last_used_at"])


async def touch(tx: Tx, key_hash: bytes) -> None:
    """It was used, which is written once a minute. The transaction must have been opened with the key's hash."""
    params = {"key_hash": key_hash, "now": tx.now, "before": tx.now - TOUCH_AFTER}
    await tx.execute(sql.keys.touch, params)


async def page(
    tx: Tx,
    seen: KeyVisibility,
    *,
    key_id: KeyId | None = None,
    principal_id: PrincipalId | None = None,
    is_revoked: bool | None = None,
    before: KeyId | None = None,
    limit: int = 1,
) -> list[StoredKey]:
    """Newest first."""
    rows = await tx.fetch(
        sql.keys.page,
        {
            "own": seen.own,
            "is_admin": seen.is_admin,
            "is_system": seen.is_system,
            "workspace_id": tx.workspace_id,
            "id": key_id,
            "principal_id": principal_id,
            "is_revoked": is_revoked,
            "before": before,
            "limit": limit,
        },
    )
    return [stored_key(row) for row in rows]


async def lock(tx: Tx, key_id: KeyId, seen: KeyVisibility) -> StoredKey | None:
    """Read once it is locked: what it was before that may have changed."""
    await tx.execute(sql.keys.lock, {"id": key_id})
    return next(iter(await page(tx, seen, key_id=key_id)), None)


async def change(
    tx: Tx, key_id: KeyId, *, name: str, scopes: Iterable[str], expires_at: datetime | None
) -> None:
    params = {"id": key_id, "name": name, "scopes": sorted(scopes), "expires_at": expires_at}
    await tx.execute(sql.keys.change, params)


async def revoke(tx: Tx, key_id: KeyId) -> bool:
    """Whether it was valid until now."""
    return await tx.execute(sql.keys.revoke, {"id": key_id, "now": tx.now}) > 0


async def count_valid(tx: Tx) -> int:
    """Of the workspace of the transaction."""
    row = await tx.fetch_one(sql.keys.count_valid, {"workspace_id": tx.workspace_id, "now": tx.now})
    return int(row["valid"]) if row else 0


async def revoke_of_principal(tx: Tx, principal_id: PrincipalId) -> int:
    return await tx.execute(sql.keys.revoke_of_principal, {"principal_id": principal_id, "now": tx.now})


async def revoke_of_workspace(tx: Tx, workspace_id: WorkspaceId) -> int:
    return await tx.execute(sql.keys.revoke_of_workspace, {"workspace_id": workspace_id, "now": tx.now})


def stored_key(row: Row) -> StoredKey:
    """Of a row of `api_keys` with its holder beside it."""
    holder = Principal(
        id=row["principal_id"],
        workspace_id=row["workspace_id"],
        kind=PrincipalKind(row["kind"]),
        name=row["principal_name"],
        role=MemberRole(row["role"]),
    )
    return StoredKey(
        id=row["id"],
        holder=holder,
        is_holder_active=row["active"],
        name=row["name"],
        prefix=row["prefix"],
        scopes=frozenset(row["scopes"]),
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
        created_at=row["created_at"],
        made_by=row["made_by"],
    )


def _principal(row: Row) -> Principal:
    return Principal(
        id=row["id"],
        workspace_id=row["workspace_id"],
        kind=PrincipalKind(row["kind"]),
        name=row["name"],
        role=MemberRole(row["role"]),
    )


async def lock_maker(tx: Tx, key_id: KeyId) -> bool:
    """Whether this key may still make others. Until the end of the transaction nobody revokes it."""
    row = await tx.fetch_one(sql.keys.lock_maker, {"id": key_id, "now": tx.now})
    return row is not None and bool(row["is_valid"])


async def count_valid_family(tx: Tx, key_id: KeyId) -> int:
    """How many valid keys were made with this one, with those, and so on."""
    found, makers = 0, [key_id]
    while makers:
        rows = await _made(tx, makers)
        found += sum(is_valid for _, _, is_valid in rows)
        makers = [made for made, _, _ in rows]
    return found


async def lock_family(tx: Tx, key_id: KeyId) -> list[StoredKey]:
    """All of them, makers before what they made. Needs the lock of the first: a locked key makes no other."""
    found: list[StoredKey] = []
    makers = [key_id]
    while makers:
        by_home: defaultdict[WorkspaceId | None, list[KeyId]] = defaultdict(list)
        for made, workspace_id, _ in await _made(tx, makers):
            by_home[workspace_id].append(made)
        for home in sorted(by_home, key=str):
            async with tx.within(home or tx.workspace_id):
                rows = await tx.fetch(sql.keys.lock_family, {"ids": by_home[home]})
            found += [stored_key(row) for row in rows]
        makers = [made for several in by_home.values() for made in several]
    return found


async def _made(tx: Tx, makers: Sequence[KeyId]) -> list[tuple[KeyId, WorkspaceId | None, bool]]:
    await tx.execute(sql.keys.name_makers, {"makers": list(makers)})
    rows = await tx.fetch(sql.keys.made, {"makers": list(makers), "now": tx.now})
    return [(row["id"], row["workspace_id"], row["is_valid"]) for row in rows]
