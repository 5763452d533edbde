"""The sweeper settles runs that no worker will report any more, and checks waiting runs, every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random, SystemRandom

from foliot.engine.loop import AT_ONCE, about
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity import installation
from foliot.services.jobs.job_status import resume_due
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import advance_waiting_runs

EVERY = 2.5  # seconds; a setting may change it


class Sweeper:
    def __init__(
        self,
        database: Database,
        announce: Callable[[Hint], None],
        chance: Random | None = None,
        *,
        every: float = EVERY,
    ) -> None:
        self._database = database
        self._announce = announce
        self._chance = chance or SystemRandom()
        self._every = every

    async def step(self) -> timedelta:
        if (await installation.state(self._database)).is_held:
            return about(self._every, self._chance)  # a restored installation waits for its operator
        swept = await sweep(self._database)
        tended = await advance_waiting_runs(self._database)
        resumed = await resume_due(self._database)
        if (
            swept.lost
            or swept.timed_out
            or swept.cancelled
            or tended.released
            or tended.judged
            or tended.ended
        ):
            self._announce(Hint.READY)
        if swept.lost or swept.timed_out or swept.cancelled or tended.timers or resumed:
            self._announce(Hint.TIMERS)
        return AT_ONCE if swept.is_full or tended.is_full else about(self._every, self._chance)
