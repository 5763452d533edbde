"""How far runs are, told by their workers now and then."""

from __future__ import annotations

from collections.abc import Mapping

from foliot.domain.ids import RunId
from foliot.domain.progress import Progress
from foliot.storage.queue import run_queue
from foliot.storage.tx import Database, Role

__all__ = ["Progress", "tell"]


async def tell(database: Database, told: Mapping[tuple[RunId, int], Progress]) -> None:
    """Nobody waits for this to be safe: the next word comes soon."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await run_queue.set_progress(tx, told)
