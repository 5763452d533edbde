"""The watcher looks for silence: it needs the database and nothing of the scheduler. While all is well it pings an outside monitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.clock import monotonic
from foliot.engine.loop import about
from foliot.services import Database
from foliot.services.notifications.watch import watch, watch_expiries, watch_runs

CHECK_EVERY = 15.0  # seconds
PING_EVERY = 60.0
RUNS_EVERY = 60.0  # late, slow and stuck ones: their limits are minutes
EXPIRIES_EVERY = 3_600.0
Ping = Callable[[], Awaitable[None]]


class Watcher:
    def __init__(self, database: Database, ping: Ping | None = None, chance: Random | None = None) -> None:
        self._database = database
        self._ping = ping
        self._chance = chance or SystemRandom()
        self._done_at: dict[str, float] = {}  # by name of the task

    async def step(self) -> timedelta:
        found = await watch(self._database)
        if self._is_due("runs", RUNS_EVERY):
            await watch_runs(self._database)
        if self._is_due("expiries", EXPIRIES_EVERY):
            await watch_expiries(self._database)
        if self._ping is not None and found.is_healthy and self._is_due("ping", PING_EVERY):
            await self._ping()
        return about(CHECK_EVERY, self._chance)

    def _is_due(self, task: str, every: float) -> bool:
        """Return whether the task is due, and count from now on."""
        now, last = monotonic(), self._done_at.get(task)
        if last is not None and now - last < every:
            return False
        self._done_at[task] = now
        return True
