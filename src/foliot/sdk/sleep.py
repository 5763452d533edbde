"""What the two clients say in different words: a pair for each, of which the twin of `asynchronous` takes the second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from foliot.clock import pause
from foliot.sdk.response import Answer
from foliot.wire.shape import Page

AsyncPages = Callable[[str | None], Awaitable[Page[Answer]]]
Pages = Callable[[str | None], Page[Answer]]


async def async_nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


def nap(seconds: float) -> None:
    pause(seconds)
