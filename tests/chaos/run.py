"""`./dev chaos`: two nodes under load, whose processes are killed, stopped and frozen by chance for as long as you like.

In the end the books are held against a witness: every planned time has one record, every success was seen, nothing runs twice under
one fence, and no process is left behind. Exit code 1 where that is not so. A run is repeated, as far as processes allow, by its seed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from foliot import Client
from foliot.clock import SystemClock
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start as start_postgres
from foliot.handlers.supervisor import descendants
from tests.stories.installation import FAST, Installation
from tests.stories.server_process import InstalledServerProcess, ServerProcess, wait_until

ERRANDS = Path(__file__).parents[1] / "stories" / "job_functions.py"
NODES = 2
WITNESS = "echo done $FOLIOT_RUN_ID $FOLIOT_ATTEMPT $FOLIOT_FENCE >> {sink}"


class Town:
    """The nodes, and what can happen to them."""

    def __init__(self, installation: Installation, chance: random.Random) -> None:
        self.installation = installation
        self.chance = chance
        self.nodes: list[ServerProcess] = []
        self.happened: Counter[str] = Counter()

    def start(self) -> ServerProcess:
        number = len(self.nodes)
        given = {"FOLIOT_DATABASE_URL": self.installation.url, "FOLIOT_ALLOW_COMMANDS": "yes", **FAST}
        node = InstalledServerProcess(self.installation.folder / f"node{number % NODES}-{number}", **given)
        self.nodes.append(node)
        return node

    @property
    def alive(self) -> list[ServerProcess]:
        return [node for node in self.nodes if node.process.poll() is None]

    def fault(self) -> None:
        faults: tuple[Callable[[], None], ...] = (
            self.kill_a_hand,
            self.kill_a_hand,
            self.kill_a_worker,
            self.freeze_a_worker,
            self.kill_a_node,
            self.stop_a_node,
        )
        fault = self.chance.choice(faults)
        fault()
        self.happened[fault.__name__] += 1
        while len(self.alive) < NODES:
            self.start()

    def kill_a_hand(self) -> None:
        below = [pid for worker in self._workers() for pid in descendants(worker)]
        if below:
            _signal(self.chance.choice(below), signal.SIGKILL)

    def kill_a_worker(self) -> None:
        if workers := self._workers():
            _signal(self.chance.choice(workers), signal.SIGKILL)

    def freeze_a_worker(self) -> None:
        """Past its lease: what it reports afterwards is refused."""
        if workers := self._workers():
            chosen = self.chance.choice(workers)
            _signal(chosen, signal.SIGSTOP)
            threading.Event().wait(4)
            _signal(chosen, signal.SIGCONT)

    def kill_a_node(self) -> None:
        node = self.chance.choice(self.alive)
        node.stop(signal.SIGKILL)

    def stop_a_node(self) -> None:
        self.chance.choice(self.alive).stop()

    def _workers(self) -> list[int]:
        return [pid for node in self.alive for pid in descendants(node.process.pid) if _is_worker(pid)]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (5)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="by chance")
    asked = parser.parse_args(argv)
    print(f"Chaos for {asked.minutes:g} min, seed {asked.seed}.", flush=True)
    with staged() as installation:
        town = Town(installation, random.Random(asked.seed))
        try:
            runs = upset(town, asked.minutes * 60)
            check(installation)
        finally:
            for node in town.nodes:
                node.end()
    left = _left_behind()
    print(f"{runs}; faults: {dict(town.happened)}; processes left behind: {len(left)}")
    return 1 if left else 0


def upset(town: Town, seconds: float) -> dict[str | None, int]:
    installation, first = town.installation, town.start()
    url = first.wait_for_url()
    installation.open_gate()
    key = next(installation.folder.glob("*/admin.key")).read_text().strip()
    with Client(url, key) as client:
        for job in jobs(installation):
            client.jobs.create(job)
    town.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        town.fault()
        threading.Event().wait(town.chance.uniform(1, 5))
    with Client(town.alive[0].wait_for_url(), key) as client:
        end_at = (SystemClock().now() + timedelta(seconds=10)).isoformat()
        for each in client.jobs.each():
            client.jobs.patch(each.id, {"end_at": end_at})
    not_over = "SELECT FROM foliot.jobs WHERE status = 'active'"
    wait_until(lambda: not installation.rows(not_over), "the end of all jobs")
    open_runs = "SELECT count(*) FROM foliot.runs WHERE status IS NULL"
    wait_until(lambda: installation.rows(open_runs) == [(0,)], "the end of all runs", within=120)
    for node in town.alive:
        node.stop()
    return dict(installation.statuses())


def jobs(installation: Installation) -> Iterator[dict[str, Any]]:
    common = {
        "overlap": "concurrent",
        "payload": installation.payload,
        "retry": {"max": 50, "strategy": "fixed", "base": "1s", "past_next": True},
    }
    calls = [*["quickly"] * 10, *["gated"] * 5]
    for number, call in enumerate(calls):
        work = {"type": "python", "config": {"call": f"job_functions:{call}"}}
        yield {"name": f"{call} {number}", "schedule": {"kind": "interval", "every": "1s"}, **common, **work}
    for number in range(5):
        argv = ["sh", "-c", WITNESS.format(**installation.payload) + "; setsid sleep 30 & sleep 0.2"]
        work = {"type": "command", "config": {"argv": argv}}
        yield {"name": f"command {number}", "schedule": {"kind": "interval", "every": "1s"}, **common, **work}


def check(installation: Installation) -> None:
    installation.check_every_second_has_its_record()
    installation.check_every_success_was_witnessed()
    assert installation.rows("SELECT count(*) FROM foliot.leases") == [(0,)]
    wrong = installation.rows(
        "SELECT status, error, count(*) FROM foliot.runs WHERE status NOT IN ('succeeded', 'skipped') GROUP BY 1, 2"
    )
    assert {status for status, _, _ in wrong} <= {"interrupted"}, wrong  # three workers lost under one run


@contextmanager
def staged() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="foliot-chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        folder.chmod(0o711)  # PostgreSQL may run as another user
        shutil.copy(ERRANDS, folder)
        config = EmbeddedConfig(folder / "theirs")
        installation = Installation(folder, config, start_postgres(config))
        try:
            yield installation
        finally:
            installation.server.stop()


def _is_worker(pid: int) -> bool:
    with suppress(OSError):
        return b"foliot.wiring.worker_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _left_behind() -> list[int]:
    """Whoever still works for a run of ours."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and b"foliot-chaos-" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


if __name__ == "__main__":
    sys.exit(main())
