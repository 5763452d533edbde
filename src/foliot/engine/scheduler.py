"""The scheduler ticks while any timer is due, then naps until the next planned time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random, SystemRandom

from foliot.clock import monotonic
from foliot.engine.loop import AT_ONCE, about
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.scheduling.tick import (
    BATCH,
    TickResult,
    count_due,
    count_planned,
    note_tick,
    tick,
    until_due,
    until_next_due,
)

log = logging.getLogger(__name__)

CHECK_EVERY = 5.0  # seconds, should a hint get lost; a setting may change it
LATE = timedelta(milliseconds=2)  # waking early would find nothing
JUST_DUE = timedelta(seconds=1)
MOMENT = timedelta(milliseconds=50)
NOTED_EVERY = timedelta(seconds=3)


class Scheduler:
    def __init__(
        self,
        database: Database,
        announce: Callable[[Hint], None],
        chance: Random | None = None,
        *,
        check_every: float = CHECK_EVERY,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._announce = announce
        self._chance = chance or SystemRandom()
        self._check_every = check_every
        self._batch = batch
        self._has_counted = False  # the jobs that were due before the first step
        self._noted_at: datetime | None = None

    async def step(self) -> timedelta:
        started = monotonic()
        if not self._has_counted:
            late, planned = await count_due(self._database), await count_planned(self._database)
            self._has_counted = True
            log.info(
                "scheduler.started",
                extra={"jobs": planned, "poll_interval_ms": round(self._check_every * 1000)},
            )
            if late:
                log.info("scheduler.recovering", extra={"jobs": late})
        ticked = await tick(self._database, self._batch)
        nap = await self._after(ticked)
        # A line for every poll is for those who ask for it: polls come every few seconds, and many a second under load.
        took = round((monotonic() - started) * 1000)
        log.debug(
            "scheduler.polled",
            extra={
                "due": ticked.looked_at,
                "recorded": ticked.recorded,
                "ms": took,
                "next_poll_ms": round(nap.total_seconds() * 1000),
            },
        )
        return nap

    async def _after(self, ticked: TickResult) -> timedelta:
        """Tell the others, and return how long to sleep."""
        if ticked.at is not None and (self._noted_at is None or ticked.at - self._noted_at >= NOTED_EVERY):
            await note_tick(self._database)
            self._noted_at = ticked.at
        if ticked.recorded:
            self._announce(Hint.READY)
        if ticked.looked_at == self._batch:
            return AT_ONCE
        check = about(self._check_every, self._chance)
        left = await until_due(self._database)
        if left is None:
            return check
        if left > AT_ONCE:
            return min(left + LATE, check)
        if -left < JUST_DUE:  # it has just become due, or another node fires it
            return MOMENT
        # Due for long and not fired: its lock is held, it cannot be set aside, or the installation is held. Polling faster would not
        # help, and other timers must not be late because of it.
        coming = await until_next_due(self._database)
        return check if coming is None else min(max(coming + LATE, MOMENT), check)
