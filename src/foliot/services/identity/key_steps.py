"""Steps of making keys, shared by keys, invites and sign-in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from foliot.domain.access import KeyHolder
from foliot.domain.errors import Denied
from foliot.domain.quotas import check_keys
from foliot.services.identity.authentication import Caller
from foliot.storage.identity import keys, workspaces
from foliot.storage.identity.keys import StoredKey
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key. The secret is stored nowhere."""

    key: StoredKey
    secret: str = field(repr=False)


async def lock_maker(tx: Tx, holder: KeyHolder) -> KeyHolder:
    """Lock the key that makes another. A session stands for the key that it was opened with: that one is the maker then."""
    if not await keys.lock_maker(tx, holder.key_id):  # the cache may have admitted it
        raise Denied("This key has just ended.", hint="Use another.")
    maker = await keys.session_maker(tx, holder.key_id)
    if maker is None:
        return holder
    if maker.id is not None and not await keys.lock_maker(tx, maker.id):
        raise Denied("The key that this session was opened with has ended.", hint="Sign in again.")
    return replace(holder, key_id=maker.id or holder.key_id, expires_at=maker.expires_at)


async def check_key_quota(tx: Tx, caller: Caller) -> None:
    """Check the quota after the insert, under a lock, so that two writers cannot take the last place."""
    quotas = caller.scope.actor.quotas
    if quotas.keys is not None and tx.workspace_id is not None:
        await workspaces.lock_quota(tx)
        check_keys(quotas, await keys.count_valid(tx))
