"""Ready runs and the workers there are: what nobody could take."""

from __future__ import annotations

from datetime import datetime

from foliot.domain.target import Target, target_of
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def groups(tx: Tx, by: datetime, limit: int) -> list[tuple[str, str, int, datetime, Target | None]]:
    """Queue, type, how many runs could have started by then, since when the oldest could, and where they must go."""
    params = {"workspace_id": tx.workspace_id, "by": by, "now": tx.now, "limit": limit}
    rows = await tx.fetch(sql.ready.unserved, params)
    return [
        (row["queue"], row["type"], row["runs"], row["since"], row["target"] and target_of(row["target"]))
        for row in rows
    ]
