"""Fires: due timers planned by the time engine and recorded, by the real `tick`, in one process per connection."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.engine.population import DUE, Population
from bench.engine.processes import Measured, Signal, together
from bench.engine.setup import Bench, Site
from foliot.services.tick import tick
from foliot.storage.tx import Database

LONGEST = 45.0  # seconds; after a minute what is due would be late, and late times are another path
MOST_DUE = 300_000


class ShiftedClock:
    """Runs at the pace of real time, from another day on."""

    def __init__(self, at: datetime, since: float | None = None) -> None:
        self.at = at
        self.since = time.monotonic() if since is None else since

    def now(self) -> datetime:
        return self.at + timedelta(seconds=time.monotonic() - self.since)


def population(jobs: int) -> Population:
    return Population(jobs, min(jobs, MOST_DUE))


def measure(bench: Bench, jobs: int, connections: int = 2) -> Measured:
    with bench.database(population(jobs)) as site:
        return on(site, connections)


def on(site: Site, connections: int) -> Measured:
    return together(site.server_pid, [(ticking, (site.url,))] * connections)


def ticking(signal: Signal, url: str) -> tuple[int, float, float, Any]:
    return asyncio.run(_ticking(signal, url))


async def _ticking(signal: Signal, url: str) -> tuple[int, float, float, Any]:
    clock = ShiftedClock(CREATED_BEFORE_ANYTHING)
    async with Database(url, clock=clock) as database:
        await tick(database)  # nothing is due yet: the connection opens and the code is warm
        began = signal.wait()
        clock.at, clock.since = DUE, began
        fired, ended = 0, began
        while ended - began < LONGEST and (ticked := await tick(database)).looked_at:
            fired += ticked.recorded
            ended = time.monotonic()
        return fired, began, ended, None


CREATED_BEFORE_ANYTHING = datetime(2027, 1, 1, tzinfo=UTC)
