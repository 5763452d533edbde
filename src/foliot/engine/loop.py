"""A loop calls a step again and again; the step returns how long to nap. Steps never sleep; only this file does.

An exception of a step is logged, and the step is called again after a pause that grows, with jitter so that many nodes do not retry in
the same instant. So a loop waits for a database that is away, and one failing step ends nothing else.

Why: docs/decisions/300-loops-and-hints.md
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from random import Random, SystemRandom

from foliot.domain.errors import Unavailable

log = logging.getLogger(__name__)

Step = Callable[[], Awaitable[timedelta]]
AT_ONCE = timedelta(0)
STEP_WITHIN = 60.0  # seconds; a step is a few bounded transactions, so a longer one hangs
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds after failures


class Loop:
    def __init__(
        self, name: str, step: Step, *, within: float | None = STEP_WITHIN, chance: Random | None = None
    ) -> None:
        self.name = name
        self.is_running = False
        self._step = step
        self._within = within
        self._chance = chance or SystemRandom()
        self._failures = 0
        self._stopping = False
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """End the nap, or skip the next one: something may have changed since the step ran."""
        self._woken.set()

    def stop(self) -> None:
        """Finish the step under way and start no other."""
        self._stopping = True
        self.wake()

    async def run(self) -> None:
        self.is_running = True
        try:
            while not self._stopping:
                self._woken.clear()
                nap = await self._one_step()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), nap.total_seconds())
        finally:
            self.is_running = False

    async def _one_step(self) -> timedelta:
        try:
            async with asyncio.timeout(self._within):
                nap = await self._step()
        except Exception as error:
            self._failures += 1
            nap = self._pause()
            facts = {"loop": self.name, "failures": self._failures, "again_in": round(nap.total_seconds(), 3)}
            if self._failures & (self._failures - 1):
                pass  # logged at the 1st, 2nd, 4th, 8th …: a database may be away for hours
            elif isinstance(error, Unavailable):
                log.warning("loop.failed", extra={**facts, "reason": str(error)})
            else:
                log.exception("loop.failed", extra=facts)
        else:
            self._failures = 0
        return nap

    def _pause(self) -> timedelta:
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 10))
        return timedelta(seconds=longest * self._chance.uniform(0.5, 1))


def about(seconds: float, chance: Random) -> timedelta:
    """Return a nap of about this length: nodes that started together drift apart."""
    return timedelta(seconds=seconds * chance.uniform(0.8, 1.2))
