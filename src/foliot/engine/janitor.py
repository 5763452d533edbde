"""The janitor runs maintenance tasks one after the other, never in the way of firing."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from random import Random, SystemRandom

from foliot.domain.errors import Unavailable
from foliot.engine.loop import about

log = logging.getLogger(__name__)

JanitorTask = Callable[[], Awaitable[bool]]  # one bounded batch; returns whether there is more to do
EVERY = 60.0  # seconds
BATCH_PAUSE = timedelta(milliseconds=100)  # so that pruning never fills the disk's queue


class Janitor:
    def __init__(
        self, tasks: Sequence[JanitorTask], chance: Random | None = None, *, every: float = EVERY
    ) -> None:
        self._tasks = tasks
        self._every = every
        self._chance = chance or SystemRandom()

    async def step(self) -> timedelta:
        is_more = False
        for task in self._tasks:
            try:
                is_more |= await task()
            except Unavailable:
                raise
            except Exception:  # a failing task must not stop the next
                log.exception("janitor_task.failed", extra={"task": getattr(task, "__name__", repr(task))})
        return BATCH_PAUSE if is_more else about(self._every, self._chance)
