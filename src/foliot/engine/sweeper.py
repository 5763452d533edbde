"""The sweeper: settle what nobody will report any more, every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.engine.loop import AT_ONCE, about
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.sweep import sweep

EVERY = 2.5  # seconds


class Sweeper:
    def __init__(
        self, database: Database, announce: Callable[[Hint], None], chance: Random | None = None
    ) -> None:
        self._database = database
        self._announce = announce
        self._chance = chance or SystemRandom()

    async def step(self) -> timedelta:
        swept = await sweep(self._database)
        if swept.lost or swept.timed_out or swept.cancelled:
            self._announce(Hint.READY)
            self._announce(Hint.TIMERS)
        return AT_ONCE if swept.is_full else about(EVERY, self._chance)
