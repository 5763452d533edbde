"""Measure the CPU of an idle `foliot serve`, its worker and PostgreSQL, with many jobs of which none is due for weeks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.engine.population import Population
from bench.engine.processes import children, cpu_of, server_cpu
from bench.engine.setup import Bench, Site
from foliot.embedded.launch import free_port

READY_WITHIN = 60.0  # seconds
SETTLES = 5.0  # seconds before the measurement begins


@dataclass(frozen=True, slots=True)
class Idle:
    cpu_percent: float  # of one core, of the busier of the two processes
    rss_mib: float  # of the larger
    server_cpu_percent: float


def measure(bench: Bench, jobs: int, seconds: float) -> Idle:
    with bench.database(Population(jobs, 0)) as site, _serving(site) as pid:
        time.sleep(SETTLES)
        pids = [pid, *children(pid)]
        before, began, spent = [cpu_of(each) for each in pids], time.monotonic(), server_cpu(site.server_pid)
        time.sleep(seconds)
        took = time.monotonic() - began
        cpu = [after - earlier for after, earlier in zip(map(cpu_of, pids), before, strict=True)]
        return Idle(
            max(cpu) / took * 100,
            max(map(_rss, pids)),
            (server_cpu(site.server_pid) - spent) / took * 100,
        )


@contextmanager
def _serving(site: Site) -> Iterator[int]:
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        port = free_port()
        mine = {
            "FOLIOT_DATABASE_URL": site.url,
            "FOLIOT_MIGRATE_URL": site.owner_url,
            "FOLIOT_DATA_DIR": folder,
            "FOLIOT_PORT": str(port),
        }
        with Path(folder, "log").open("wb") as log:
            foliot = Path(sys.executable).with_name("foliot")
            process = subprocess.Popen(
                [foliot, "serve"], env=os.environ | mine, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        try:
            _await_ready(f"http://127.0.0.1:{port}/readyz", process, Path(folder, "log"))
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def _await_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until and process.poll() is None:
        with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(address) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"foliot serve was not ready:\n{log.read_text()}")


def _rss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
