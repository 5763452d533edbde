"""Our worker: claim, execute, settle, history, for functions on its loop and for those in processes of their own; and its heartbeat."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import NamedTuple

from bench.engine import fires, loops
from bench.engine.clock import ShiftedClock
from bench.engine.loops import Plan
from bench.engine.population import DUE, TYPE, Population
from bench.engine.processes import Measured, own_cpu, server_cpu, together
from bench.engine.setup import Bench
from foliot.services.workers import workers
from foliot.services.workers.claim import Turns, claim
from foliot.storage.tx import Database

LONGEST = 120.0  # seconds
CHILDREN = 4  # functions at once in processes of their own
BEATS = 20
A_DAY = timedelta(days=1)


def measure(bench: Bench, jobs: int, call: str, permits: int = loops.PERMITS) -> Measured:
    with bench.database(Population(jobs, jobs)) as site:
        fired = fires.on(site, 2)
        plan = Plan(DUE + timedelta(seconds=60), time.monotonic(), LONGEST, fired.count)
        return together(site.server_pid, [(loops.working, (site.url, plan, call, permits))])


class Heartbeat(NamedTuple):
    """What a beat takes that tells of all runs a worker has, in milliseconds."""

    runs: int
    took: float
    own_cpu: float
    server_cpu: float


def measure_heartbeat(bench: Bench, runs: int) -> Heartbeat:
    with bench.database(Population(runs, runs)) as site:
        fires.on(site, 2)
        return asyncio.run(_beat(site.url, site.server_pid, runs))


async def _beat(url: str, server_pid: int, runs: int) -> Heartbeat:
    async with Database(url, clock=ShiftedClock(DUE, time.monotonic())) as database:
        worker_id = await workers.register(database, "bench", ["default"], [TYPE], runs, lease=A_DAY)
        held: list[tuple[object, int]] = []
        turns = Turns()
        while found := await claim(database, worker_id, "default", [TYPE], 500, turns):
            held += [(each.run_id, each.fence) for each in found]
        spent, own, began = server_cpu(server_pid), own_cpu(), time.monotonic()
        for _ in range(BEATS):
            beat = await workers.beat(database, worker_id, working_on=held, lease=A_DAY)  # type: ignore[arg-type]
            assert beat.is_alive
            assert not beat.gone
        took = time.monotonic() - began
        cpu = own_cpu() - own, server_cpu(server_pid) - spent
    return Heartbeat(len(held), *(each / BEATS * 1_000 for each in (took, *cpu)))
