"""A scheduler and a worker as processes: each naps until its next due time, a hint, or the safety check."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from bench.engine.clock import ShiftedClock
from bench.engine.population import TYPE
from bench.engine.processes import Signal
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.services.claim import Turns, claim
from foliot.services.report import Report, report
from foliot.services.tick import BATCH, next_due, tick
from foliot.storage.tx import Database

SAFETY = 5.0  # seconds between looks when nothing is heard
PERMITS = 200
_HINT = "bench_ready"


@dataclass(frozen=True, slots=True)
class Plan:
    """When a measurement takes place: `start` on the monotonic clock, which is `at` on the shifted one, for `seconds`."""

    at: datetime
    start: float
    seconds: float

    @property
    def clock(self) -> ShiftedClock:
        return ShiftedClock(self.at, self.start)

    @property
    def left(self) -> float:
        return self.start + self.seconds - time.monotonic()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a loop has to tell: entries of handlers as (planned_for, seconds late), and its memory at the end in MiB."""

    lags: list[tuple[datetime, float]]
    rss_mib: float


def scheduling(signal: Signal, url: str, plan: Plan) -> tuple[int, float, float, Any]:
    return asyncio.run(_scheduling(signal, url, plan))


def working(signal: Signal, url: str, plan: Plan) -> tuple[int, float, float, Any]:
    return asyncio.run(_working(signal, url, plan))


async def _scheduling(signal: Signal, url: str, plan: Plan) -> tuple[int, float, float, Any]:
    fired = 0
    async with (
        Database(url, clock=plan.clock) as database,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as hints,
    ):
        began = signal.wait()
        while plan.left > 0:
            ticked = await tick(database)
            if ticked.recorded:
                fired += ticked.recorded
                await hints.execute(f"NOTIFY {_HINT}")
            if ticked.looked_at < BATCH:
                due_at = await next_due(database)
                wait = SAFETY if due_at is None else (due_at - plan.clock.now()) / timedelta(seconds=1)
                await asyncio.sleep(max(0.0, min(wait, SAFETY, plan.left)))
    return fired, began, time.monotonic(), Seen([], _rss())


async def _working(signal: Signal, url: str, plan: Plan) -> tuple[int, float, float, Any]:
    worker_id, turns, lags = WorkerId(uuid4()), Turns(), list[tuple[datetime, float]]()
    async with (
        Database(url, clock=plan.clock) as database,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as hints,
    ):
        await hints.execute(f"LISTEN {_HINT}")
        began = signal.wait()
        settling: set[asyncio.Task[Any]] = set()
        while plan.left > 0:
            claimed = await claim(database, worker_id, "default", [TYPE], PERMITS, turns)
            entered = plan.clock.now()
            lags += ((run.planned_for, (entered - run.planned_for).total_seconds()) for run in claimed)
            if claimed:
                reports = [
                    Report(run.run_id, run.job_id, run.fence, worker_id, Succeeded()) for run in claimed
                ]
                settling = {task for task in settling if not task.done()}
                settling.add(asyncio.create_task(report(database, reports)))
            else:
                with suppress(StopAsyncIteration):
                    await anext(hints.notifies(timeout=min(SAFETY, max(0.0, plan.left)), stop_after=1))
        await asyncio.gather(*settling)
    return len(lags), began, time.monotonic(), Seen(lags, _rss())


def _rss() -> float:
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024
