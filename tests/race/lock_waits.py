"""Whether somebody waits for a lock of ours: PostgreSQL is asked until it says so. Servers are shared, so only this database counts."""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import AsyncConnection

BLOCKED = (
    b"SELECT count(*) FROM pg_stat_activity"
    b" WHERE backend_type = 'client backend' AND datname = current_database() AND wait_event_type = 'Lock'"
)


async def until_blocked(
    watcher: AsyncConnection[Any], count: int = 1, other: asyncio.Task[Any] | None = None
) -> None:
    async with asyncio.timeout(30):
        while True:
            found = await (await watcher.execute(BLOCKED)).fetchone()
            await watcher.rollback()  # the next look must be a new one
            if found is not None and found[0] >= count:
                return
            assert other is None or not other.done(), "it was to wait for a lock, and did not"
            await asyncio.sleep(0.01)
