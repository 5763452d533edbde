"""`./dev prove hung`: the start lag of an every-second job of one workspace, before, while and after the runs of another hang.

A `foliot serve` with default settings, and a receiver that answers nothing. 300 jobs of the first workspace call it and hang until their
timeout. The lag is the start of a run minus its planned time, as the history tells it.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from rich.console import Console
from rich.table import Table

from foliot import Client

BAR = 2.0  # seconds at p99


class Lags(NamedTuple):
    phase: str
    runs: int
    skipped: int
    p50: float
    p99: float
    most: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hung", description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=60, help="of each phase")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="foliot-hung-") as folder,
        silent_receiver() as silent,
        served(folder) as (url, key),
        Client(url, key) as first,
        Client(url, key, workspace="bystander") as second,
    ):
        first.workspaces.create("bystander", name="Bystander")
        found = measure(first, second, f"{url}/healthz", silent, options)
    show(found)
    during = found[1]
    return 0 if during.runs and during.p99 <= BAR else 1


def measure(
    first: Client, second: Client, answers: str, silent: str, options: argparse.Namespace
) -> list[Lags]:
    beat = second.jobs.create(
        {
            "name": "beat",
            "type": "http",
            "config": {"url": answers, "method": "GET"},
            "schedule": {"kind": "interval", "every": "1s"},
        }
    )
    time.sleep(3)
    found = [phase(second, beat.id, "before", options.seconds)]
    hang = f"{options.seconds + 30}s"
    jobs = [
        first.jobs.create(
            {
                "name": f"hangs {number}",
                "type": "http",
                "config": {"url": f"{silent}/{number}"},
                "schedule": {"kind": "manual"},
                "timeout": hang,
                "retry": {"max": 0},
            }
        )
        for number in range(options.jobs)
    ]
    for job in jobs:
        first.jobs.run(job.id)
    print(f"{options.jobs} runs of the first workspace hang.", flush=True)
    found.append(phase(second, beat.id, "while 300 hang", options.seconds))
    for job in jobs:
        first.jobs.delete(job.id)
    for run in list(first.runs.each(status=["running"])):
        first.runs.cancel(run.id)
    time.sleep(5)
    found.append(phase(second, beat.id, "after", options.seconds))
    return found


def phase(client: Client, job_id: UUID, name: str, seconds: int) -> Lags:
    began = datetime.now(UTC)
    time.sleep(seconds)
    until = datetime.now(UTC)
    runs = list(takewhile(lambda run: run.planned_for >= began, client.jobs.each_run(job_id)))
    runs = [run for run in runs if run.planned_for < until]
    lags = sorted((run.lag_ms or 0) / 1000 for run in runs if run.started_at)
    cuts = statistics.quantiles(lags, n=100) if len(lags) > 1 else [float("inf")] * 99
    skipped = sum(run.count or 1 for run in runs if run.status == "skipped")
    return Lags(name, len(lags), skipped, cuts[49], cuts[98], max(lags, default=float("inf")))


@contextmanager
def silent_receiver() -> Iterator[str]:
    """Accept every connection and answer none."""
    with socket.create_server(("127.0.0.1", 0), backlog=1_000) as listening:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for each in held:
            each.close()


@contextmanager
def served(folder: str) -> Iterator[tuple[str, str]]:
    process = subprocess.Popen(
        (Path(sys.executable).with_name("foliot"), "serve", "--data-dir", folder, "--port", "0"),
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = next(
            (
                found[1]
                for line in process.stdout
                if (found := re.search(r"serving at (http://127\.0\.0\.1:\d+)", line))
            ),
            None,
        )
        if url is None:
            raise SystemExit("foliot serve did not start")
        threading.Thread(target=process.stdout.read, daemon=True).start()  # or it would block on a full pipe
        yield url, (Path(folder) / "admin.key").read_text().strip()
    finally:
        process.terminate()
        process.wait(30)


def show(found: list[Lags]) -> None:
    title = f"Start lag of another workspace's job, due every second; bar: p99 <= {BAR:g} s while runs hang"
    table = Table("phase", "runs", "skipped", "p50", "p99", "most", title=title)
    for each in found:
        times = (f"{value * 1000:,.0f} ms" for value in (each.p50, each.p99, each.most))
        table.add_row(each.phase, str(each.runs), str(each.skipped), *times)
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
