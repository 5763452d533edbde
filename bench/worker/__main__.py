"""`./dev bench worker`: no-op runs a second of one worker process, ours and others', and what 10,000 running runs cost a heartbeat."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.engine.report import merge
from bench.engine.rival import BATCHES, NotInstalledError, rival
from bench.engine.setup import Bench, bench
from bench.worker import ours, redis_rivals

ON_THE_LOOP, IN_A_PROCESS = "bench.worker.functions:on_the_loop", "bench.worker.functions:plain"
RUNNING = 10_000
ROUNDS = 3
BAR = 8_000  # runs a second; and no fewer than pgqueuer


@dataclass(slots=True)
class Figures:
    found: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, value: float, note: str) -> None:
        self.found[key], self.notes[key] = round(value, 3), note
        print(f"{key}: {value:,.4g}  ({note})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench worker")
    parser.add_argument(
        "--runs", type=int, default=30_000, help="for the fast ones; the slow ones get a part of it"
    )
    runs: int = parser.parse_args().runs
    load, figures = os.getloadavg()[0], Figures()
    with bench() as server:
        measure_in_turn(server, figures, runs)
        measure_ours(server, figures, runs)
    for key, measure, count in REDIS:
        jobs = min(count, runs)
        figures.add(key, measure(jobs), f"{jobs:,} jobs")
    show(figures, load)
    merge(figures.found)


def measure_in_turn(server: Bench, figures: Figures, runs: int) -> None:
    """Ours and pgqueuer's one after the other, several times: a machine that slows down does so for both."""
    found, theirs = [ours.measure(server, runs, ON_THE_LOOP)], []
    try:
        with rival() as installed:
            batch = max(BATCHES, key=lambda size: installed.measure(server, runs, size).per_second)
            for _ in range(ROUNDS):
                theirs.append(installed.measure(server, runs, batch).per_second)
                found.append(ours.measure(server, runs, ON_THE_LOOP))
            many = {
                size: installed.measure_procrastinate(server, min(3_000, runs), size).per_second
                for size in (1, 10, 100)
            }
    except NotInstalledError as error:
        print(f"pgqueuer and procrastinate were not measured: {error}", file=sys.stderr)
    own, postgres = (median(each.cpu_us[side] for each in found) for side in (0, 1))
    cost = f"each {own:.0f} us of the worker and {postgres:.0f} us of PostgreSQL"
    note = f"{runs:,} async functions, median of {len(found)}; {cost}"
    figures.add("worker_runs_per_s", median(each.per_second for each in found), note)
    if theirs:
        figures.add(
            "pgqueuer_runs_per_s", median(theirs), f"{runs:,} jobs in batches of {batch}, in turn with ours"
        )
        size, best = max(many.items(), key=lambda each: each[1])
        figures.add("procrastinate_runs_per_s", best, f"{min(3_000, runs):,} jobs, {size} at once")


def measure_ours(server: Bench, figures: Figures, runs: int) -> None:
    found = ours.measure(server, min(5_000, runs), IN_A_PROCESS, ours.CHILDREN)
    figures.add(
        "worker_child_runs_per_s", found.per_second, f"{found.count:,} functions in {ours.CHILDREN} processes"
    )
    beat = ours.measure_heartbeat(server, RUNNING)
    cost = f"{beat.own_cpu:.1f} ms of the worker and {beat.server_cpu:.1f} ms of PostgreSQL"
    figures.add("heartbeat_10k_ms", beat.took, f"{beat.runs:,} runs, one beat in 10 s; {cost}")


REDIS: tuple[tuple[str, Callable[[int], float], int], ...] = (
    ("rq_runs_per_s", redis_rivals.measure_rq, 500),
    ("celery_runs_per_s", redis_rivals.measure_celery, 3_000),
    ("bullmq_runs_per_s", redis_rivals.measure_bullmq, 10_000),
)


def show(figures: Figures, load: float) -> None:
    table = Table("figure", "measured", "bar", "with", title="One worker process")
    least = max(BAR, figures.found.get("pgqueuer_runs_per_s", 0.0))
    for key, value in figures.found.items():
        bar = f">= {least:,.0f}" if key == "worker_runs_per_s" else ""
        table.add_row(key, f"{value:,.0f}" if value >= 100 else f"{value:,.3g}", bar, figures.notes[key])
    console = Console(width=150)
    console.print(table)
    console.print(f"load before: {load:.1f}", highlight=False)


if __name__ == "__main__":
    main()
