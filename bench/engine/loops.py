"""A scheduler and a worker as processes, made of the product's own loops, on a clock that shows another day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bench.engine.clock import ShiftedClock
from bench.engine.population import TYPE
from bench.engine.processes import Signal
from foliot.engine.hints import HintListener
from foliot.engine.loop import Loop
from foliot.engine.scheduler import Scheduler
from foliot.handlers.python import PythonHandler
from foliot.handlers.registry import Assignment, HandlerResult, succeeded
from foliot.services.hints import Announcer, Hint
from foliot.storage.tx import Database, PoolSize
from foliot.wiring.process import tune_garbage_collector
from foliot.worker.link import LocalLink
from foliot.worker.worker import Worker

PERMITS = 1_000
LEASE = timedelta(hours=1)  # the heart beats by the database's own clock, so here it is left out
_LOOK_EVERY = 0.01  # seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """When a measurement takes place: `start` on the monotonic clock, which is `at` on the shifted one; until `wanted` runs
    have begun and ended, and `seconds` at most.
    """

    at: datetime
    start: float
    seconds: float
    wanted: int

    @property
    def clock(self) -> ShiftedClock:
        return ShiftedClock(self.at, self.start)

    def is_over(self, count: int) -> bool:
        return count >= self.wanted or time.monotonic() > self.start + self.seconds


class Noop:
    """A handler that notes when it was entered, and does nothing."""

    def __init__(self, clock: ShiftedClock) -> None:
        self._clock = clock
        self.entered: list[tuple[datetime, datetime]] = []  # with the planned time

    async def run(self, assignment: Assignment) -> HandlerResult:
        self.entered.append((assignment.ctx.planned_for, self._clock.now()))
        return succeeded()

    async def close(self) -> None:
        pass


class Calls(PythonHandler):
    """The handler of Python functions, whatever the job's configuration says."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call = {"call": call}
        self.entered = None

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await super().run(replace(assignment, config=self._call))


def scheduling(signal: Signal, url: str, plan: Plan) -> tuple[int, float, float, Any]:
    """Until it is ended from outside: the worker knows when all is done."""
    return asyncio.run(_scheduling(signal, url, plan))


def working(
    signal: Signal, url: str, plan: Plan, call: str | None = None, permits: int = PERMITS
) -> tuple[int, float, float, Any]:
    """Answers with the runs settled and, beside that, the planned times and entries of each; not where it calls a function."""
    tune_garbage_collector()  # as the worker of `foliot serve` does
    handler = Noop(plan.clock) if call is None else Calls(call)
    return asyncio.run(work(signal, url, plan, handler, permits))


async def _scheduling(signal: Signal, url: str, plan: Plan) -> tuple[int, float, float, Any]:
    async with Database(url, clock=plan.clock) as database:
        announcer = Announcer(database)
        ticks = Loop("scheduler", Scheduler(database, announcer.announce).step)
        listening = HintListener(database, url, {Hint.TIMERS: ticks.wake})
        async with _running(ticks, Loop("hints", listening.step, within=None)):
            began = signal.wait()
            await asyncio.to_thread(signal.await_end, plan.seconds)
        await announcer.close()
    return 0, began, time.monotonic(), None


async def work(
    signal: Signal, url: str, plan: Plan, handler: Any, permits: int
) -> tuple[int, float, float, Any]:
    """Run the worker's loops with one handler until the plan is over."""
    settled, ended = 0, plan.start
    # Without a pooler, as the worker of `foliot serve` on its private PostgreSQL.
    async with Database(url, clock=plan.clock, size=PoolSize(1, 4), is_direct=True) as database:
        link = _Counting(database, "bench", LEASE)
        worker = Worker(link, {TYPE: handler}, permits)
        reporter = worker.reporter
        claims, reports = Loop("claim", worker.step), Loop("report", reporter.step)
        listening = HintListener(database, url, {Hint.READY: claims.wake})
        worker.wake, reporter.wake = claims.wake, reports.wake
        reporter.on_accepted = claims.wake
        began = signal.wait()
        async with _running(claims, reports, Loop("hints", listening.step, within=None)):
            while not plan.is_over(settled):
                await asyncio.sleep(_LOOK_EVERY)
                if link.settled > settled:
                    settled, ended = link.settled, link.last_at
        await handler.close()
    signal.over()
    return settled, began, ended, handler.entered


@dataclass(slots=True)
class _Counting(LocalLink):
    settled: int = 0
    last_at: float = 0.0

    async def report(self, reports: Any) -> frozenset[Any]:
        accepted = await LocalLink.report(self, reports)
        self.settled += len(accepted)
        self.last_at = time.monotonic()
        return accepted


@asynccontextmanager
async def _running(*loops: Loop) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(loop.run()) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
