"""Waiting for what another process or task does: look often, give up after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def wait_until(holds: Callable[[], object], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110  # nobody here can set an event
            await asyncio.sleep(0.005)
