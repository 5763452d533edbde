"""Run a simulation: drive the world through its time, check the invariants after each day and over everything at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import psycopg

from foliot.clock import monotonic
from foliot.storage.queue.run_queue import Claimed
from tools.simulation.driver import Driver
from tools.simulation.figures import Figures, figures, so_far
from tools.simulation.invariants import DAY, EVER, Judge
from tools.simulation.world import Size

OnDay = Callable[[int, int], None]  # the day that is over, and the occurrences so far
WEEK = 7  # days between checks of everything; other days check new records
HOT = "foliot.timers, foliot.ready, foliot.waiting, foliot.leases, foliot.workers"


class Run:
    """`run` raises `InvariantBroken` where an invariant does not hold, and leaves the database unchanged from that moment."""

    def __init__(self, size: Size, owner_url: str, owner: psycopg.Connection[Any]) -> None:
        self.owner = owner
        self.driver = Driver(size, owner_url, owner, self._end_of_day, self._claimed)
        self.judge = Judge(owner, self.driver.command_log)
        self.on_day: OnDay | None = None

    @property
    def now(self) -> datetime:
        return self.driver.clock.now()

    async def run(self) -> Figures:
        began = monotonic()
        await self.driver.run()
        self.judge.check_everything(self.now)
        driver = self.driver
        checked = self.judge.checked + (0 if driver.readers is None else driver.readers.checked)
        return figures(self.owner, driver.size, driver.shared.counts, checked, monotonic() - began)

    async def _end_of_day(self) -> None:
        # Throw-away servers have no autovacuum, and a month of dead rows would slow the nodes down.
        self.owner.execute(f"VACUUM {HOT}")
        self.owner.execute("ANALYZE foliot.runs, foliot.attempts")
        day = (self.now - self.driver.size.start).days
        self.judge.check(self.now, EVER if day % WEEK == 0 else self.now - 2 * DAY)
        if self.on_day is not None:
            self.on_day(day, so_far(self.owner))

    def _claimed(self, claimed: Sequence[Claimed]) -> None:
        self.judge.check_claims(claimed, self.now)


async def simulate(size: Size, owner_url: str, on_day: OnDay | None = None) -> Figures:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        run = Run(size, owner_url, owner)
        run.on_day = on_day
        return await run.run()
