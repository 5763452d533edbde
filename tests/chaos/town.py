"""Two nodes with workers on one PostgreSQL, each behind a proxy of its own, and the faults that can happen to them.

A fault is a method of `Faults`: it breaks something, waits, and mends it. `FAULTS` names them all; `disk-stall` needs a C compiler.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foliot import Client
from foliot.handlers.supervisor import descendants
from tests.chaos.postgres import Cluster, children, locked, no_connections_left
from tests.chaos.proxy import Mode, Proxy
from tests.stories.server_process import InstalledServerProcess, ServerProcess, wait_until

HERE = Path(__file__).parent
NODES = 2
LEASE = 6  # seconds: a third of it, in which a worker that cannot renew stops its work, is longer than a process takes to end
SETTINGS = {
    "FOLIOT_WORKER_LEASE": str(LEASE),
    "FOLIOT_ALLOW_COMMANDS": "yes",
    "FOLIOT_LOG_FORMAT": "json",
}
COMMAND = "echo command $FOLIOT_RUN_ID $FOLIOT_ATTEMPT $FOLIOT_FENCE $(date +%s.%N) 0 $$ >> {sink}; setsid sleep 30 & sleep 0.2"


@dataclass
class Node:
    number: int
    proxy: Proxy
    process: ServerProcess | None = None
    url: str = ""
    starts: int = 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.process.pid

    def workers(self) -> list[int]:
        return [pid for pid in descendants(self.pid) if _is_worker(pid)] if self.is_alive else []


@dataclass
class Town:
    folder: Path
    cluster: Cluster
    chance: random.Random
    nodes: list[Node] = field(default_factory=list)
    processes: list[ServerProcess] = field(default_factory=list)

    @property
    def sink(self) -> Path:
        return self.folder / "sink"

    def open(self, seed: int) -> None:
        shutil.copy(HERE / "job_functions.py", self.folder)
        for number in range(NODES):
            node = Node(number, Proxy(self.cluster.primary.port, seed + number))
            self.nodes.append(node)
            self.start(node)  # one by one: the first creates the tables
            self.wait_for_url(node)
        self.cluster.attach_standby()
        with self.client() as client:
            for job in self._jobs():
                client.jobs.create(job)

    def client(self) -> Client:
        key = next(self.folder.glob("node*/admin.key")).read_text().strip()
        node = next(node for node in self.nodes if node.is_alive)
        return Client(self.wait_for_url(node), key)

    def start(self, node: Node) -> None:
        data_dir = self.folder / f"node{node.number}-{node.starts}"
        url = self.cluster.primary.url(node.proxy.port)
        node.process = InstalledServerProcess(data_dir, FOLIOT_DATABASE_URL=url, **SETTINGS)
        node.starts += 1
        self.processes.append(node.process)

    def wait_for_url(self, node: Node) -> str:
        assert node.process is not None
        return node.process.wait_for(r'"server.started".*"url": "([^"]+)"')[1]

    def start_missing(self) -> None:
        for node in self.nodes:
            if not node.is_alive:
                self.start(node)

    def end(self) -> None:
        for process in self.processes:
            with suppress(OSError):
                process.end()
        for node in self.nodes:
            node.proxy.close()
        self.cluster.end()

    def _jobs(self) -> Iterator[dict[str, Any]]:
        common = {
            "overlap": "concurrent",
            "retry": {"max": 50, "strategy": "fixed", "base": "1s", "past_next": True},
            "schedule": {"kind": "interval", "every": "1s"},
            "misfire": "all",
        }
        for number, (call, seconds) in enumerate([("brief", 0)] * 6 + [("steady", 9), ("patient", 9)]):
            every = "4s" if seconds else "1s"
            yield {
                **common, "name": f"{call} {number}", "type": "python",
                "schedule": {"kind": "interval", "every": every},
                "config": {"call": f"job_functions:{call}"},
                "payload": {"sink": str(self.sink), "seconds": seconds},
            }  # fmt: skip
        argv = ["sh", "-c", COMMAND.format(sink=self.sink)]
        yield {**common, "name": "command", "type": "command", "config": {"argv": argv}}


class Faults:
    """What can happen. Each takes a few seconds, longer than a lease where that matters."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self._chance = town.chance

    def kill_child(self) -> None:
        """Kill one process that executes a run."""
        below = [pid for worker in self._workers() for pid in descendants(worker)]
        if below:
            _signal(self._chance.choice(below), signal.SIGKILL)

    def kill_worker(self) -> None:
        """Kill a worker; its runs are given to another after the lease."""
        if workers := self._workers():
            _signal(self._chance.choice(workers), signal.SIGKILL)

    def freeze_worker(self) -> None:
        """Stop a worker and its children past the lease: what they report afterwards is refused."""
        if workers := self._workers():
            worker = self._chance.choice(workers)
            self._freeze([worker, *descendants(worker)], LEASE + 2)

    def kill_node(self) -> None:
        """Kill a node, and its worker with it."""
        self._node().process.stop(signal.SIGKILL)  # type: ignore[union-attr]

    def stop_node(self) -> None:
        """Stop a node in order: it returns what it cannot finish."""
        self._node().process.stop()  # type: ignore[union-attr]

    def freeze_node(self) -> None:
        """Stop a node without its worker: scheduler, sweeper and API."""
        self._freeze([self._node().pid], LEASE + 2)

    def kill_postgres(self) -> None:
        """End the database as a power cut would, and start it again."""
        self.town.cluster.primary.kill()
        _wait(self._chance.uniform(0.5, 8))
        self.town.cluster.primary.start()

    def kill_backend(self) -> None:
        """Kill one session's process: PostgreSQL ends them all and recovers."""
        primary = self.town.cluster.primary
        _signal(self._chance.choice(children(primary.pid)), signal.SIGKILL)
        _wait(0.5)
        wait_until(primary.answers, "PostgreSQL to recover")

    def freeze_postgres(self) -> None:
        """Stop every process of the database."""
        primary = self.town.cluster.primary
        primary.signal_all(signal.SIGSTOP)
        _wait(self._chance.uniform(LEASE + 2, 20))
        primary.signal_all(signal.SIGCONT)

    def cut_network(self) -> None:
        """Close every connection to the database and refuse new ones."""
        self._through_proxies(Mode.CUT, self._chance.uniform(2, 12))

    def hold_network(self) -> None:
        """Packets get lost without a word."""
        self._through_proxies(Mode.HOLD, self._chance.uniform(LEASE + 1, 25))

    def delay_network(self) -> None:
        """Delay every packet."""
        self._through_proxies(Mode.DELAY, 8, delay=self._chance.uniform(0.05, 0.4))

    def reset_before_commit(self) -> None:
        """Reset connections as they commit: nothing is committed."""
        self._through_proxies(Mode.RESET_BEFORE_COMMIT, 8, share=self._chance.uniform(0.1, 1))

    def reset_after_commit(self) -> None:
        """Reset connections as they commit: it is committed, and the answer is lost."""
        self._through_proxies(Mode.RESET_AFTER_COMMIT, 8, share=self._chance.uniform(0.1, 1))

    def disk_stall(self) -> None:
        """Let no commit reach the disk for longer than a worker waits for its claim."""
        stall_file = self.town.cluster.primary.stall_file
        stall_file.touch()
        _wait(self._chance.uniform(35, 50))
        stall_file.unlink()

    def standby(self) -> None:
        """Lead one node to the read-only standby for longer than a lease, while the other can take over its runs."""
        cluster = self.town.cluster
        assert cluster.standby is not None
        node = self._node()
        node.proxy.lead_to(cluster.standby.port)
        _wait(self._chance.uniform(3 * LEASE, 5 * LEASE))
        node.proxy.lead_to(cluster.primary.port)

    def promote(self) -> None:
        """Kill the primary, promote the standby, and lead the nodes there."""
        cluster = self.town.cluster
        new = cluster.fail_over()
        for node in self.town.nodes:
            node.proxy.lead_to(new.port)

    def read_only(self) -> None:
        """Let the database refuse every write."""
        primary = self.town.cluster.primary
        primary.set("default_transaction_read_only", "on")
        primary.end_sessions()
        _wait(self._chance.uniform(2 * LEASE, 4 * LEASE))
        primary.set("default_transaction_read_only", "")

    def no_connections(self) -> None:
        """Take every connection that the database has."""
        with no_connections_left(self.town.cluster.primary):
            _wait(self._chance.uniform(LEASE, 3 * LEASE))

    def lock_tables(self) -> None:
        """Hold locks on tables that claims, settlements or ticks need."""
        tables = self._chance.choice(
            ("timers", "runs", "leases", "ready", "workers", "runs, leases, workers")
        )
        names = ", ".join(f"foliot.{name}" for name in tables.split(", "))
        with locked(self.town.cluster.primary, names):
            _wait(self._chance.uniform(LEASE, 15))

    def _node(self) -> Node:
        return self._chance.choice([node for node in self.town.nodes if node.is_alive])

    def _some_nodes(self) -> list[Node]:
        return self._chance.choice([self.town.nodes, self.town.nodes[:1], self.town.nodes[1:]])

    def _workers(self) -> list[int]:
        return [pid for node in self.town.nodes for pid in node.workers()]

    def _through_proxies(self, mode: Mode, seconds: float, **how: float) -> None:
        chosen = self._some_nodes()
        for node in chosen:
            node.proxy.set(mode, **how)
        _wait(seconds)
        for node in chosen:
            node.proxy.set(Mode.PASS)

    def _freeze(self, pids: list[int], seconds: float) -> None:
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        _wait(seconds)
        for pid in pids:
            _signal(pid, signal.SIGCONT)


FAULTS: dict[str, Callable[[Faults], None]] = {
    name.replace("_", "-"): fault for name, fault in vars(Faults).items() if not name.startswith("_")
}
# A process that is stopped cannot know that its lease is over; it may work on for a moment when it wakes, and is refused.
MAY_OVERLAP = frozenset({"freeze-worker"})


@contextmanager
def town(folder: Path, seed: int) -> Iterator[Town]:
    made = Town(folder, Cluster(folder), random.Random(seed))
    try:
        made.open(seed)
        yield made
    finally:
        made.end()


def _is_worker(pid: int) -> bool:
    with suppress(OSError):
        return b"foliot.wiring.worker_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)
