"""Idle: what a scheduler, a worker and PostgreSQL spend beside many jobs of which none is due for three quarters of an hour."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta

from bench.engine.loops import Plan, scheduling, working
from bench.engine.population import CREATED, Population
from bench.engine.processes import together
from bench.engine.setup import Bench


@dataclass(frozen=True, slots=True)
class Idle:
    cpu_percent: float  # of one core, of the busier of the two processes
    rss_mib: float  # of the larger
    server_cpu_percent: float


def measure(bench: Bench, jobs: int, seconds: float) -> Idle:
    with bench.database(Population(jobs, 0)) as site:
        plan = Plan(CREATED + timedelta(seconds=1), time.monotonic(), seconds + 3.0)
        found = together(site.server_pid, [(scheduling, (site.url, plan)), (working, (site.url, plan))])
    assert found.count == 0, "something was due"
    return Idle(
        max(done.cpu / (done.ended - done.began) for done in found.done) * 100,
        max(done.more.rss_mib for done in found.done),
        found.server_cpu / found.seconds * 100,
    )
