"""The janitor: chores that keep the house small, one after the other, never in the way of firing."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from random import Random, SystemRandom

from foliot.domain.errors import Unavailable
from foliot.engine.loop import about

log = logging.getLogger(__name__)

JanitorTask = Callable[[], Awaitable[bool]]  # one bounded batch; True when there is more to do
EVERY = 60.0  # seconds
BREATH = timedelta(milliseconds=100)  # between batches, so that pruning never fills the disk's queue


class Janitor:
    def __init__(self, chores: Sequence[JanitorTask], chance: Random | None = None) -> None:
        self._chores = chores
        self._chance = chance or SystemRandom()

    async def step(self) -> timedelta:
        is_more = False
        for chore in self._chores:
            try:
                is_more |= await chore()
            except Unavailable:
                raise
            except Exception:  # a chore that fails must not keep the next from its turn
                log.exception("chore.failed", extra={"chore": getattr(chore, "__name__", repr(chore))})
        return BREATH if is_more else about(EVERY, self._chance)
