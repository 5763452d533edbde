"""Fire, claim and settle at once: one process ticks, one works, until every run of every due job has ended."""

from __future__ import annotations

from bench.engine.fires import ticking
from bench.engine.population import Population
from bench.engine.processes import Measured, together
from bench.engine.runs import working
from bench.engine.setup import Bench


def measure(bench: Bench, jobs: int) -> Measured:
    with bench.database(Population(jobs, jobs)) as site:
        return together(
            site.server_pid, [(ticking, (site.url,)), (working, (site.url, jobs))], counted=slice(1, None)
        )
