"""The bell: rung when there may be work, for those who wait for it over HTTP. Whoever misses it looks again before long.

Why: docs/decisions/322-waiting-over-http.md
"""

from __future__ import annotations

import asyncio


class WorkSignal:
    """Take the mark first, then look for work, then wait by the mark: a ring in between is not lost."""

    def __init__(self) -> None:
        self._mark = asyncio.Event()

    def ring(self) -> None:
        self._mark.set()
        self._mark = asyncio.Event()

    def mark(self) -> asyncio.Event:
        return self._mark

    async def wait(self, mark: asyncio.Event, stopping: asyncio.Event, within: float) -> None:
        """Until it rings, the server stops, or the time is up."""
        waits = [asyncio.create_task(each.wait()) for each in (mark, stopping)]
        try:
            await asyncio.wait(waits, timeout=max(within, 0.001), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
