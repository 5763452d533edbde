"""Wait until PostgreSQL reports that a transaction of this database waits for a lock."""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import AsyncConnection

BLOCKED = (
    b"SELECT count(*) FROM pg_stat_activity"
    b" WHERE backend_type = 'client backend' AND datname = current_database() AND wait_event_type = 'Lock'"
)


async def wait_until_blocked(
    watcher: AsyncConnection[Any], count: int = 1, other: asyncio.Task[Any] | None = None
) -> None:
    async with asyncio.timeout(30):
        while True:
            found = await (await watcher.execute(BLOCKED)).fetchone()
            await watcher.rollback()  # statistics are read once per transaction
            if found is not None and found[0] >= count:
                return
            assert other is None or not other.done(), "it did not wait for a lock"
            await asyncio.sleep(0.01)
