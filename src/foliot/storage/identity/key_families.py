"""Keys and what they made: a key remembers the one it was made with, so a family can be found and ended as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from foliot.domain.ids import KeyId, WorkspaceId
from foliot.storage.identity.keys import StoredKey, stored_key
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def lock_maker(tx: Tx, key_id: KeyId) -> bool:
    """Whether this key may still make others. Until the end of the transaction nobody revokes it."""
    row = await tx.fetch_one(sql.key_families.lock_maker, {"id": key_id, "now": tx.now})
    return row is not None and bool(row["is_valid"])


async def count_valid(tx: Tx, key_id: KeyId) -> int:
    """How many valid keys were made with this one, with those, and so on."""
    found, makers = 0, [key_id]
    while makers:
        rows = await _made(tx, makers)
        found += sum(is_valid for _, _, is_valid in rows)
        makers = [made for made, _, _ in rows]
    return found


async def lock(tx: Tx, key_id: KeyId) -> list[StoredKey]:
    """All of them, makers before what they made. Needs the lock of the first: a locked key makes no other."""
    found: list[StoredKey] = []
    makers = [key_id]
    while makers:
        by_home: defaultdict[WorkspaceId | None, list[KeyId]] = defaultdict(list)
        for made, workspace_id, _ in await _made(tx, makers):
            by_home[workspace_id].append(made)
        for home in sorted(by_home, key=str):
            async with tx.within(home or tx.workspace_id):
                rows = await tx.fetch(sql.key_families.lock, {"ids": by_home[home]})
            found += [stored_key(row) for row in rows]
        makers = [made for several in by_home.values() for made in several]
    return found


async def _made(tx: Tx, makers: Sequence[KeyId]) -> list[tuple[KeyId, WorkspaceId | None, bool]]:
    await tx.execute(sql.key_families.name_makers, {"makers": list(makers)})
    rows = await tx.fetch(sql.key_families.made, {"makers": list(makers), "now": tx.now})
    return [(row["id"], row["workspace_id"], row["is_valid"]) for row in rows]
