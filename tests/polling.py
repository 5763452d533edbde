"""Poll a condition that another process or task will meet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def wait_until(holds: Callable[[], object], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110  # no event to wait for
            await asyncio.sleep(0.005)
