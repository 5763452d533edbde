"""A server under attack, and the job of a bystander whose start lag is measured before, during and after.

An attack is a module `tests/attacks/<name>.py` with a `main`, run by `./dev prove <name>`:

    with attacked_site(FOLIOT_WORKER_CONCURRENCY="10") as site:
        with site.phase("before", 10):
            site.rest()
        with site.phase("during", 60):
            ...                       # the attack, with site.url and site.create_workspace("attacker")
        with site.phase("after", 10):
            site.rest()
        return site.judge(p99_ms=300)  # prints the table; 1 where the bystander started too late
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from foliot import Client
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start as start_postgres
from tests.stories.server_process import InstalledServerProcess, wait_until

BYSTANDER = "bystander"
JOB = {
    "name": "bystander",
    "type": "message",
    "config": {"text": "still here"},
    "schedule": {"kind": "interval", "every": "1s"},
}
CLEARLY = 1.5
SETTLES_AFTER = 2.0  # seconds: the last planned time of a phase may start after its end
_LAGS = """
    SELECT extract(epoch FROM COALESCE(started_at, clock_timestamp()) - planned_for)::float8
      FROM foliot.run_records
     WHERE job_id = %s AND status <> 'skipped' AND planned_for >= %s AND planned_for < %s
"""


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    began: datetime
    ended: datetime

    @property
    def planned(self) -> int:
        """How many planned times of a job every second lie in the phase, give or take one."""
        return int((self.ended - self.began).total_seconds())


@dataclass(frozen=True, slots=True)
class Lags:
    """Start lags of one phase in seconds, sorted. A planned time that started nothing counts as `missed`."""

    phase: Phase
    seconds: list[float]

    @property
    def missed(self) -> int:
        return max(0, self.phase.planned - 1 - len(self.seconds))

    def at(self, part: float) -> float:
        """Return a percentile; a missed planned time is worse than every lag."""
        known = [*self.seconds, *[math.inf] * self.missed] or [math.inf]
        return known[min(len(known) - 1, math.ceil(part * len(known)) - 1)]


@dataclass
class Site:
    """A running server and its database. The attacker works in workspaces of its own."""

    url: str
    key: str
    database_url: str
    server: InstalledServerProcess
    job_id: Any = None
    phases: list[Phase] = field(default_factory=list)

    def client(self, workspace: str | None = None) -> Client:
        return Client(self.url, self.key, workspace)

    def create_workspace(self, slug: str) -> str:
        """Create a workspace and return the slug; system keys work in it by the header Foliot-Workspace."""
        with self.client() as client:
            client.workspaces.create(slug)
        return slug

    def start_bystander(self) -> None:
        """Create the job that fires every second, and wait until it has run."""
        self.create_workspace(BYSTANDER)
        with self.client(BYSTANDER) as client:
            self.job_id = client.jobs.create(JOB).id
        wait_until(lambda: self._lags(None), "the bystander's first run")

    @contextmanager
    def phase(self, name: str, seconds: float = 0.0) -> Iterator[float]:
        """Measure the bystander's job while the block lasts. Yields `seconds`, the length the block should have."""
        began = self.now()
        yield seconds
        self.phases.append(Phase(name, began, self.now()))

    def rest(self, seconds: float = 10.0) -> None:
        threading.Event().wait(seconds)

    def lags(self, phase: Phase) -> Lags:
        return Lags(phase, sorted(self._lags(phase)))

    def judge(self, *, p99_ms: float, during: str = "during") -> int:
        """Print the bystander's start lag in all phases. Return 1 where it misses the bar in the phase `during`."""
        self.rest(SETTLES_AFTER)
        table = Table(title=f"start lag of a bystander's job every second; load {os.getloadavg()[0]:.1f}")
        for column in ("phase", "runs", "missed", "p50 ms", "p95 ms", "p99 ms", "max ms"):
            table.add_column(column, justify="left" if column == "phase" else "right")
        worst = 0.0
        for phase in self.phases:
            lags = self.lags(phase)
            figures = [f"{lags.at(part) * 1e3:,.0f}" for part in (0.5, 0.95, 0.99, 1.0)]
            table.add_row(phase.name, str(len(lags.seconds)), str(lags.missed), *figures)
            if phase.name == during:
                worst = lags.at(0.99) * 1e3
        Console().print(table)
        return judge(f"p99 {during} the attack at most {p99_ms:.0f} ms", worst / p99_ms)

    def now(self) -> datetime:
        [(instant,)] = self.rows("SELECT clock_timestamp()")
        return instant  # type: ignore[no-any-return]

    def rows(self, query: Any, params: Any = None) -> list[Any]:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(query, params).fetchall()

    def _lags(self, phase: Phase | None) -> list[float]:
        since, until = ("-infinity", "infinity") if phase is None else (phase.began, phase.ended)
        return [row[0] for row in self.rows(_LAGS, (self.job_id, since, until))]


def judge(bar: str, part: float) -> int:
    """Print whether the bar holds: `part` is at most 1 then. Return 1 only where it is missed clearly: machines are shared."""
    print(f"bar: {bar}: {'held' if part <= 1 else 'MISSED'}", flush=True)
    return 1 if part > CLEARLY else 0


@contextmanager
def attacked_site(**environ: str) -> Iterator[Site]:
    """Start PostgreSQL and a `foliot serve` on it, with the bystander's job running."""
    with tempfile.TemporaryDirectory(prefix="foliot-attack-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        folder.chmod(0o711)  # PostgreSQL may run as another user
        postgres = start_postgres(EmbeddedConfig(folder / "postgres"))
        server = InstalledServerProcess(
            folder / "data", FOLIOT_DATABASE_URL=postgres.owner_url, FOLIOT_LOG_LEVEL="warning", **environ
        )
        try:
            url = server.wait_for_url()
            key = (folder / "data" / "admin.key").read_text().strip()
            site = Site(url, key, postgres.owner_url, server)
            site.start_bystander()
            yield site
        finally:
            server.stop()
            server.end()
            postgres.stop()
