"""Wakes requests that wait for work over HTTP. A missed signal costs a few seconds, because they also query on a timer.

Why: docs/decisions/322-waiting-over-http.md
"""

from __future__ import annotations

import asyncio


class WorkSignal:
    """Take the mark first, then query for work, then wait for the mark: a signal in between is not lost."""

    def __init__(self) -> None:
        self._mark = asyncio.Event()

    def ring(self) -> None:
        self._mark.set()
        self._mark = asyncio.Event()

    def mark(self) -> asyncio.Event:
        return self._mark

    async def wait(self, mark: asyncio.Event, stopping: asyncio.Event, within: float) -> None:
        """Wait for the signal, the stop of the server, or the timeout."""
        waits = [asyncio.create_task(each.wait()) for each in (mark, stopping)]
        try:
            await asyncio.wait(waits, timeout=max(within, 0.001), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
