"""Processes that work side by side from one signal on, and what they and PostgreSQL have spent meanwhile."""

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
    ready, go = _spawn.Semaphore(0), _spawn.Event()
    pipes = []
    processes = []
    for work, args in works:
        mine, theirs = _spawn.Pipe(duplex=False)
        process = _spawn.Process(target=_one, args=(work, args, Signal(ready, go), theirs), daemon=True)
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
    done = [pipe.recv() for pipe in pipes]
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
    ready: Any
    go: Any

    def wait(self) -> float:
        """Say that all is prepared, wait for the others, and answer with the instant at which it began."""
        self.ready.release()
        self.go.wait()
        return time.monotonic()


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def server_cpu(postmaster: int) -> float:
    """Seconds spent by PostgreSQL: its living processes and those that have ended."""
    spent = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            pid, stat = int(folder.name), (folder / "stat").read_text()
        except OSError:
            continue
        fields = stat.rsplit(") ", 1)[1].split()
        if pid == postmaster:
            spent += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            spent += sum(map(int, fields[11:13]))
    return spent / TICKS


def _one(work: Work, args: tuple[Any, ...], signal: Signal, answer: Connection) -> None:
    before = [0.0]

    class Timed(Signal):
        def wait(self) -> float:
            began = Signal.wait(self)
            before[0] = own_cpu()
            return began

    count, began, ended, more = work(Timed(signal.ready, signal.go), *args)
    answer.send(Done(count, began, ended, own_cpu() - before[0], more))
