"""Listening to many streams of Redis at once. A stream of our own among them ends a wait when there is more to listen for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis

from foliot.handlers.bridge.engine import MARGIN, reaching

Entry = tuple[str, dict[str, Any]]  # its id, its fields


class Streams:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._bell = f"foliot:bell:{uuid4()}"
        self._rung = "0-0"

    async def read(self, after: Mapping[str, str], seconds: float) -> dict[str, list[Entry]]:
        """What came in each behind the id we know; waits for the first of them, as long as it may."""
        asked: dict[Any, Any] = {**after, self._bell: self._rung}
        with reaching():
            found: Any = await self._redis.xread(asked, block=max(1, int(seconds * 1000)))
        entries: dict[str, list[Entry]] = dict(found or ())
        if rung := entries.pop(self._bell, None):
            self._rung = rung[-1][0]
        return entries

    async def wake(self) -> None:
        with reaching():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.xadd(self._bell, {"more": "1"}, maxlen=1, approximate=False)
                pipe.expire(self._bell, MARGIN)
                await pipe.execute()

    async def last(self, stream: str) -> str:
        """The newest id there is."""
        with reaching():
            newest: Any = await self._redis.xrevrange(stream, count=1)
        return str(newest[0][0]) if newest else "0-0"
