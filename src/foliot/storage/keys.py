"""Principals and their API keys as rows. Of a key only the hash is ever written."""

from __future__ import annotations

from datetime import datetime, timedelta

from foliot.domain.access import ApiKey, KeyHolder, MemberRole, Principal, PrincipalKind
from foliot.domain.ids import KeyId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx

_TOUCH_AFTER = timedelta(
    minutes=1
)  # last_used_at is for people; writing it on every request would be for nobody


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
    await tx.execute(sql.principals.insert, params)


async def system_principal_exists(tx: Tx) -> bool:
    row = await tx.fetch_one(sql.principals.system_exists)
    return row is not None and bool(row["so"])


async def revive_system_principal(tx: Tx, name: str) -> Principal | None:
    """The administrator of this name, active again if it had been switched off."""
    row = await tx.fetch_one(sql.principals.system_by_name, {"name": name})
    if row is None:
        return None
    if not row["active"]:
        await tx.execute(sql.principals.activate, {"id": row["id"]})
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
        "now": tx.now,
    }
    await tx.execute(sql.keys.insert, params)


async def find_presented(tx: Tx, key: ApiKey) -> KeyHolder | None:
    """Whose key this is, while it is valid. The transaction must have been opened with the key's hash."""
    row = await tx.fetch_one(sql.keys.find_presented, {"key_hash": key.hash, "now": tx.now})
    if row is None:
        return None
    if row["last_used_at"] is None or tx.now - row["last_used_at"] >= _TOUCH_AFTER:
        await tx.execute(sql.keys.touch, {"key_hash": key.hash, "now": tx.now})
    return KeyHolder(_principal(row), row["key_id"], frozenset(row["scopes"]), row["expires_at"])


def _principal(row: Row) -> Principal:
    return Principal(
        id=row["id"],
        workspace_id=row["workspace_id"],
        kind=PrincipalKind(row["kind"]),
        name=row["name"],
        role=MemberRole(row["role"]),
    )
