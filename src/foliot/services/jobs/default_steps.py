"""Load the defaults that a new definition inherits."""

from __future__ import annotations

from foliot.domain.defaults import JobDefaults
from foliot.storage.identity import defaults
from foliot.storage.tx import Tx


async def load_defaults(tx: Tx) -> JobDefaults:
    """Return the defaults of the transaction's workspace; they stay as they are until the transaction ends."""
    assert tx.workspace_id is not None
    await defaults.lock_shared(tx)
    return (await defaults.load(tx, tx.workspace_id)).values
