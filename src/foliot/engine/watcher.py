"""The watcher looks for silence: it needs the database and nothing of the scheduler. While all is well it pings an outside monitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.clock import monotonic
from foliot.engine.loop import about
from foliot.services import Database
from foliot.services.notifications.watch import watch

CHECK_EVERY = 15.0  # seconds
PING_EVERY = 60.0
Ping = Callable[[], Awaitable[None]]


class Watcher:
    def __init__(self, database: Database, ping: Ping | None = None, chance: Random | None = None) -> None:
        self._database = database
        self._ping = ping
        self._chance = chance or SystemRandom()
        self._pinged_at: float | None = None

    async def step(self) -> timedelta:
        found = await watch(self._database)
        now = monotonic()
        is_due = self._pinged_at is None or now - self._pinged_at >= PING_EVERY
        if self._ping is not None and is_due and found.is_healthy:
            await self._ping()
            self._pinged_at = now
        return about(CHECK_EVERY, self._chance)
