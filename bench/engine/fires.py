"""Fires: due timers planned by the time engine and recorded, by the real `tick`, in one process per connection."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.engine.clock import ShiftedClock
from bench.engine.population import CREATED, DUE, Population
from bench.engine.processes import Measured, Signal, together
from bench.engine.setup import Bench, Site
from foliot.services.scheduling.tick import tick
from foliot.storage.tx import Database

LONGEST = 45.0  # seconds; after a minute what is due would be late, and late times are another path
MOST_DUE = 300_000


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
    async with Database(url, clock=ShiftedClock(CREATED, time.monotonic())) as early:
        await tick(early)  # nothing is due yet: only the code is warm
    began = signal.wait()
    async with Database(url, clock=ShiftedClock(DUE, began)) as database:
        fired, ended = 0, began
        while ended - began < LONGEST and (ticked := await tick(database)).looked_at:
            fired += ticked.recorded
            ended = time.monotonic()
    return fired, began, ended, None
