"""Run processes side by side from one signal on, and measure the CPU that they and PostgreSQL use."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from foliot.wiring.process import tune_garbage_collector

TICKS = os.sysconf("SC_CLK_TCK")
_spawn = multiprocessing.get_context("spawn")  # a fresh interpreter each, as in life


@dataclass(frozen=True, slots=True)
class Done:
    """What one process did. Instants are of the monotonic clock, which all processes share."""

    count: int
    began: float
    ended: float
    cpu: float  # seconds
    more: Any = None


@dataclass(frozen=True, slots=True)
class Measured:
    count: int
    seconds: float  # from the first to the last that worked
    client_cpu: float
    server_cpu: float
    done: tuple[Done, ...]

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def cpu_us(self) -> tuple[float, float]:
        """Microseconds of processor time for each: of our processes, of PostgreSQL's."""
        return self.client_cpu / self.count * 1e6, self.server_cpu / self.count * 1e6


Work = Callable[
    ..., tuple[int, float, float, Any]
]  # (the signal, its arguments) -> count, began, ended, more


def together(
    server_pid: int, works: list[tuple[Work, tuple[Any, ...]]], counted: slice = slice(None)
) -> Measured:
    """Run each work in a process of its own. They prepare, wait for the signal, and begin at once; `counted` says whose counts add up."""
    ready, go, finished = _spawn.Semaphore(0), _spawn.Event(), _spawn.Event()
    pipes = []
    processes = []
    for work, args in works:
        mine, theirs = _spawn.Pipe(duplex=False)
        process = _spawn.Process(
            target=_one, args=(work, args, Signal(ready, go, finished), theirs), daemon=True
        )
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    for _ in works:
        while not ready.acquire(timeout=1):
            if any(process.exitcode for process in processes):
                raise RuntimeError("a process of the benchmark died while preparing")
    before = server_cpu(server_pid)
    go.set()
    try:
        done = [pipe.recv() for pipe in pipes]
    except EOFError:
        raise RuntimeError(
            "a process of the benchmark died while it was measured; its last words are above"
        ) from None
    spent = server_cpu(server_pid) - before
    for process in processes:
        process.join()
    counting = done[counted]
    return Measured(
        sum(each.count for each in counting),
        max(each.ended for each in counting) - min(each.began for each in counting),
        sum(each.cpu for each in done),
        spent,
        tuple(done),
    )


@dataclass(frozen=True, slots=True)
class Signal:
    """What the processes of one measurement tell each other."""

    ready: Any
    go: Any
    finished: Any

    def wait(self) -> float:
        """Say that all is prepared, wait for the others, and answer with the instant at which it began."""
        self.ready.release()
        self.go.wait()
        return time.monotonic()

    def over(self) -> None:
        self.finished.set()

    def await_end(self, within: float) -> None:
        self.finished.wait(within)


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def server_cpu(postmaster: int) -> float:
    """Seconds spent by PostgreSQL: its living processes and those that have ended."""
    while True:
        before, spent = children(postmaster), 0
        for pid in (postmaster, *before):
            fields = _stat(pid)
            spent += sum(map(int, fields[11:15] if pid == postmaster else fields[11:13]))
        if children(postmaster) == before:  # else one has ended meanwhile: counted twice or not at all
            return spent / TICKS


def cpu_of(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / TICKS


def children(parent: int) -> list[int]:
    """Also those that have ended and were not yet reaped."""
    pids = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return sorted(pid for pid in pids if (fields := _stat(pid)) and int(fields[1]) == parent)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name, which may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return []


def _one(work: Work, args: tuple[Any, ...], signal: Signal, answer: Connection) -> None:
    tune_garbage_collector()  # as every process of the product does
    before = [0.0]

    class Timed(Signal):
        def wait(self) -> float:
            began = Signal.wait(self)
            before[0] = own_cpu()
            return began

    count, began, ended, more = work(Timed(signal.ready, signal.go, signal.finished), *args)
    answer.send(Done(count, began, ended, own_cpu() - before[0], more))
