"""Runs: claimed and settled by the real services in one process, which executes nothing in between; and the same through the whole
worker, which loads each run's work, calls a handler that does nothing, and reports.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

from bench.engine import fires, loops
from bench.engine.clock import ShiftedClock
from bench.engine.loops import Plan
from bench.engine.population import DUE, TYPE, Population
from bench.engine.processes import Measured, Signal, together
from bench.engine.setup import Bench
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.services.settlement.report import Report, report
from foliot.services.workers import workers
from foliot.services.workers.claim import Turns, claim
from foliot.storage.tx import Database

PERMITS = 500
BATCHES = 2  # batches under way at once: one is claimed while another is settled
LONGEST = 60.0  # seconds
A_DAY = timedelta(days=1)


def measure(bench: Bench, jobs: int) -> Measured:
    with bench.database(Population(jobs, jobs)) as site:
        fired = fires.on(site, 2)
        return together(site.server_pid, [(working, (site.url, fired.count))])


def measure_worker(bench: Bench, jobs: int) -> Measured:
    with bench.database(Population(jobs, jobs)) as site:
        fired = fires.on(site, 2)
        plan = Plan(DUE + timedelta(seconds=60), time.monotonic(), LONGEST + 30, fired.count)
        return together(site.server_pid, [(loops.working, (site.url, plan))])


def working(signal: Signal, url: str, wanted: int) -> tuple[int, float, float, Any]:
    return asyncio.run(_working(signal, url, wanted))


async def _working(signal: Signal, url: str, wanted: int) -> tuple[int, float, float, Any]:
    clock = ShiftedClock(DUE, time.monotonic())
    async with Database(url, clock=clock) as database:
        await claim(database, WorkerId(uuid4()), "nothing", [TYPE], 1, Turns())
        began = signal.wait()
        tally = _Tally(wanted, began)
        await asyncio.gather(*(_claim_and_settle(database, tally) for _ in range(BATCHES)))
        return tally.settled, began, tally.ended, None


class _Tally:
    def __init__(self, wanted: int, began: float) -> None:
        self.wanted = wanted
        self.settled = 0
        self.began = self.ended = began

    def is_over(self) -> bool:
        return self.settled >= self.wanted or time.monotonic() - self.began > LONGEST


async def _claim_and_settle(database: Database, tally: _Tally) -> None:
    worker_id = await workers.register(database, "bench", ["default"], [TYPE], PERMITS, lease=A_DAY)
    turns, done = Turns(), Succeeded()
    while not tally.is_over():
        claimed = await claim(database, worker_id, "default", [TYPE], PERMITS, turns)
        if not claimed:
            await asyncio.sleep(0.005)  # the ticking process has not got there yet
            continue
        accepted = await report(
            database, [Report(run.run_id, run.job_id, run.fence, worker_id, done) for run in claimed]
        )
        tally.settled += len(accepted)
        tally.ended = time.monotonic()
