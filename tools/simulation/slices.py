"""Simulate a world in slices, each on its own database, distributed over processes.

The slices follow from the size of the world alone: the same seed gives the same history for any number of processes.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import queue
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any

from foliot.clock import monotonic
from foliot.testing.database import Databases
from tools.simulation.figures import Figures, merged
from tools.simulation.invariants import InvariantBroken
from tools.simulation.run import simulate
from tools.simulation.world import Size

CHECK_EVERY = 5.0  # seconds: a process may have died silently
Part = tuple[int, Size, str]  # its number, its world, its database


@dataclass(frozen=True, slots=True)
class Progress:
    share: float
    occurrences: int
    seconds: float

    def line(self) -> str:
        left = self.seconds / self.share * (1 - self.share) if self.share else 0
        return (
            f"{self.share:4.0%}  {self.occurrences:>11,} occurrences  {self.occurrences / self.seconds:>7,.0f}/s  "
            f"{self.seconds / 60:5.1f} min gone, about {left / 60:.1f} left"
        )


def simulate_in_slices(
    size: Size, server: Databases, processes: int, on_progress: Callable[[Progress], None]
) -> Figures:
    """Raise `InvariantBroken` where any slice breaks an invariant."""
    began, slices = monotonic(), size.slices()
    seen = [(0, 0)] * len(slices)  # day and occurrences
    done: dict[int, Figures] = {}
    context = multiprocessing.get_context("spawn")
    messages: Queue[Any] = context.Queue()
    with ExitStack() as stack:
        parts = [(number, part, stack.enter_context(server.fresh())) for number, part in enumerate(slices)]
        workers = [
            context.Process(target=_work, args=(parts[first::processes], messages), daemon=True)
            for first in range(min(processes, len(parts)))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            stack.callback(worker.terminate)
        while len(done) < len(slices):
            try:
                number, message = messages.get(timeout=CHECK_EVERY)
            except queue.Empty:
                if any(worker.exitcode for worker in workers):
                    raise InvariantBroken("a process of the simulation died silently") from None
                continue
            match message:
                case Figures():
                    done[number] = message
                case str():
                    raise InvariantBroken(f"in slice {number + 1} of {len(slices)}: {message}")
                case _:
                    seen[number] = message
                    share = sum(day for day, _ in seen) / (size.days * len(slices))
                    on_progress(Progress(share, sum(count for _, count in seen), monotonic() - began))
    return merged(size, [done[number] for number in range(len(slices))], monotonic() - began)


def _work(parts: Sequence[Part], messages: Queue[Any]) -> None:
    logging.disable(logging.WARNING)  # lost workers and refused reports are expected
    for number, size, url in parts:
        try:
            messages.put((number, asyncio.run(simulate(size, url, _progress_sender(number, messages)))))
        except Exception as broken:  # noqa: BLE001  # the parent reports it and ends
            messages.put((number, f"{type(broken).__name__}: {broken}"))
            return


def _progress_sender(number: int, messages: Queue[Any]) -> Callable[[int, int], None]:
    return lambda day, occurrences: messages.put((number, (day, occurrences)))
