"""Ten thousand jobs due in the same second, among a hundred thousand: measure how late the handlers start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta

from bench.engine.loops import Plan, scheduling, working
from bench.engine.population import DUE, Population
from bench.engine.processes import together
from bench.engine.setup import Bench

HERD = 10_000
AMONG = 100_000
SECONDS = 40.0
_DUE = HERD * 10 // 9 + 1  # one in ten is an interval, due some seconds earlier


@dataclass(frozen=True, slots=True)
class Lags:
    """In milliseconds, from the planned time to the handler's first instruction."""

    count: int
    p50: float
    p99: float
    most: float


def measure(bench: Bench) -> Lags:
    with bench.database(Population(AMONG, _DUE)) as site:
        plan = Plan(DUE - timedelta(seconds=4), time.monotonic(), SECONDS, _DUE)
        done = together(site.server_pid, [(scheduling, (site.url, plan)), (working, (site.url, plan))]).done
    return lags([entered - planned_for for planned_for, entered in done[1].more if planned_for == DUE])


def lags(waits: list[timedelta]) -> Lags:
    milliseconds = sorted(wait.total_seconds() * 1000 for wait in waits)
    last = len(milliseconds) - 1
    return Lags(
        len(milliseconds), milliseconds[last // 2], milliseconds[last * 99 // 100], milliseconds[last]
    )
