"""pgqueuer and procrastinate beside us, in the same run on the same server: no-op jobs through one process of its own.

They are no dependencies of ours: an environment is made for them and thrown away. Where the package index cannot be reached, the
figure is left out, and the table says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier

from bench.engine.processes import Done, Measured, server_cpu
from bench.engine.setup import Bench

PACKAGES = ("pgqueuer==1.6.0", "asyncpg==0.32.0", "procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8")
BATCHES = (10, 500)  # what it does by default, and what we do
LONGEST = 300  # seconds
_WORKER = Path(__file__).with_name("rival_worker.py")
_PROCRASTINATE = Path(__file__).with_name("procrastinate_worker.py")
_DATABASE = Identifier("bench_rival")


class NotInstalledError(RuntimeError):
    """The package index is out of reach, or has no such version."""


class Rival:
    """Installed once for all of its measurements."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    @cached_property
    def python(self) -> Path:
        venv.create(self._folder / "venv", with_pip=True)
        python = self._folder / "venv" / "bin" / "python"
        install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES)
        made = subprocess.run(install, capture_output=True, text=True, check=False)
        if made.returncode:
            raise NotInstalledError(made.stderr.strip().splitlines()[-1])
        return python

    def measure(self, bench: Bench, jobs: int, batch: int) -> Measured:
        return self._run(bench, _WORKER, jobs, batch)

    def measure_procrastinate(self, bench: Bench, jobs: int, concurrency: int) -> Measured:
        return self._run(bench, _PROCRASTINATE, jobs, concurrency)

    def _run(self, bench: Bench, program: Path, jobs: int, size: int) -> Measured:
        python = self.python
        with _database(bench) as url:
            spent = server_cpu(bench.server_pid)
            ran = subprocess.run(
                (str(python), str(program), url, str(jobs), str(size)),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                timeout=LONGEST,
            )
            spent = server_cpu(bench.server_pid) - spent
        result = json.loads(ran.stdout)
        done = Done(result["count"], 0, result["seconds"], result["cpu"])
        return Measured(done.count, done.ended, done.cpu, spent, (done,))


@contextmanager
def rival() -> Iterator[Rival]:
    print("making an environment for pgqueuer and procrastinate …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="foliot-rival-") as folder:
        yield Rival(folder)


@contextmanager
def _database(bench: Bench) -> Iterator[str]:
    """An empty one, as its owner: they make their own tables."""
    owner, _ = bench.server.owner_url.rsplit("/", 1)
    with psycopg.connect(bench.server.owner_url, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(_DATABASE))
        try:
            yield f"{owner}/{_DATABASE.as_string()[1:-1]}"
        finally:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(_DATABASE))
