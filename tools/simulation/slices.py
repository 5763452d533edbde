"""A world in slices, each a simulation of its own on its own database, shared out among processes.

What the slices are follows from the size of the world alone: the same seed gives the same history, however many processes there are.
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
from tools.simulation.invariants import Broken
from tools.simulation.run import simulate
from tools.simulation.world import Size

LOOK_EVERY = 5.0  # seconds, at processes that may have died without a word
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
    size: Size, server: Databases, processes: int, tell: Callable[[Progress], None]
) -> Figures:
    """Raises `Broken` where any slice breaks an invariant."""
    began, slices = monotonic(), size.slices()
    seen = [(0, 0)] * len(slices)  # day and occurrences
    done: dict[int, Figures] = {}
    context = multiprocessing.get_context("spawn")
    news: Queue[Any] = context.Queue()
    with ExitStack() as stack:
        parts = [(number, part, stack.enter_context(server.fresh())) for number, part in enumerate(slices)]
        hands = [
            context.Process(target=_work, args=(parts[place::processes], news), daemon=True)
            for place in range(min(processes, len(parts)))
        ]
        for hand in hands:
            hand.start()
        for hand in hands:
            stack.callback(hand.terminate)
        while len(done) < len(slices):
            try:
                number, word = news.get(timeout=LOOK_EVERY)
            except queue.Empty:
                if any(hand.exitcode for hand in hands):
                    raise Broken("a process of the simulation died without a word") from None
                continue
            match word:
                case Figures():
                    done[number] = word
                case str():
                    raise Broken(f"in slice {number + 1} of {len(slices)}: {word}")
                case _:
                    seen[number] = word
                    share = sum(day for day, _ in seen) / (size.days * len(slices))
                    tell(Progress(share, sum(count for _, count in seen), monotonic() - began))
    return merged(size, [done[number] for number in range(len(slices))], monotonic() - began)


def _work(parts: Sequence[Part], news: Queue[Any]) -> None:
    logging.disable(logging.WARNING)  # lost workers and refused reports are what this is about
    for number, size, url in parts:
        try:
            news.put((number, asyncio.run(simulate(size, url, _teller(number, news)))))
        except Exception as broken:  # noqa: BLE001  # whatever it was, the parent says it and ends
            news.put((number, f"{type(broken).__name__}: {broken}"))
            return


def _teller(number: int, news: Queue[Any]) -> Callable[[int, int], None]:
    return lambda day, occurrences: news.put((number, (day, occurrences)))
