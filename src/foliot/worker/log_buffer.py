"""Buffer the log lines of runs for a moment and deliver them together, bounded for each attempt.

Why: docs/decisions/302-lost-answers.md
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from foliot.clock import Clock, SystemClock
from foliot.domain.errors import Unavailable
from foliot.domain.ids import RunId
from foliot.domain.logs import (
    LogHead,
    LogLine,
    LogStream,
    fitted,
    fitting,
    lines_of,
    whole_lines,
)
from foliot.domain.masking import NO_MASKS, Masks
from foliot.sdk.context import WriteLines, never_stopping
from foliot.services.runs.logs import LogChunk
from foliot.worker.link import Link
from foliot.worker.output_masking import MaskedLines

log = logging.getLogger(__name__)

SOON, IDLE = timedelta(seconds=0.25), timedelta(seconds=30)
LARGEST_CHUNK = 500  # lines
FINISH_WITHIN = 1.0  # seconds that the end of an attempt waits until its last lines are stored
Key = tuple[RunId, int]  # a run and its fence


@dataclass(slots=True)
class AttemptLog:
    """The undelivered lines of one attempt. One line beyond the limit is passed on, so that the head shows that there were more.

    Lines are numbered: when a delivery is repeated because its answer was lost, each line is stored once.
    """

    attempt: int
    head: LogHead = field(default_factory=LogHead)
    lines: list[LogLine] = field(default_factory=list)
    delivered: int = 0
    is_over: bool = False  # no line follows
    masks: Masks = NO_MASKS
    masked: dict[LogStream, MaskedLines] = field(default_factory=dict)

    def add(self, lines: list[LogLine]) -> None:
        kept, self.head = fitting(self.head, lines)
        self.lines += lines[: len(kept) + 1]

    def add_masked(self, kind: LogStream, lines: list[LogLine]) -> None:
        """Mask secrets before lines are cut to size: half a secret would not be recognised."""
        if kind not in self.masked:
            self.masked[kind] = MaskedLines(self.masks)
        self.add([replace(line, text=fitted(line.text)) for line in self.masked[kind].take(lines)])

    def end(self) -> None:
        self.is_over = True
        for held in self.masked.values():
            self.add([replace(line, text=fitted(line.text)) for line in held.rest()])


class LogBuffer:
    """A loop runs its step and sets `wake`. Any thread may write lines."""

    def __init__(self, link: Link, clock: Clock | None = None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._link = link
        self._clock = clock or SystemClock()
        self._logs: dict[Key, AttemptLog] = {}
        self._lock = threading.Lock()
        self._delivering = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_warm = False  # the next delivery comes soon, without a wake

    def writer(
        self, key: Key, attempt: int, masks: Masks = NO_MASKS, is_over: Callable[[], bool] = never_stopping
    ) -> WriteLines:
        """Return a function that writes lines of this attempt. It drops them once `is_over`: no delivery would follow."""
        return partial(self._write, key, attempt, masks, is_over)

    async def step(self) -> timedelta:
        self._loop = asyncio.get_running_loop()
        self._is_warm = await self._deliver()
        return SOON if self._is_warm else IDLE

    def has_lines(self, key: Key) -> bool:
        """Return whether the attempt wrote lines; most write none. Once it is over, the answer does not change."""
        with self._lock:
            return key in self._logs

    async def finish(self, key: Key) -> None:
        """Deliver the last lines before the attempt is reported: readers who follow the run stop at its end."""
        attempt_log = self._logs.get(key)
        if attempt_log is None:
            return
        with self._lock:
            attempt_log.end()
        try:
            async with asyncio.timeout(FINISH_WITHIN):
                await self._deliver()
        except (Unavailable, TimeoutError) as error:
            log.warning("lines.delayed", extra={"run": str(key[0]), "reason": str(error)})

    def _write(
        self, key: Key, attempt: int, masks: Masks, is_over: Callable[[], bool], stream: str, text: str
    ) -> None:
        now, kind = self._clock.now(), LogStream(stream)
        with self._lock:
            if is_over():  # a thread or a task that outlives its attempt
                return
            attempt_log = self._logs.get(key) or self._logs.setdefault(key, AttemptLog(attempt, masks=masks))
            if attempt_log.head.truncated:
                return
            if masks:
                attempt_log.add_masked(kind, [LogLine(now, kind, line) for line in whole_lines(text)])
            else:
                attempt_log.add([LogLine(now, kind, line) for line in lines_of(text)])
        if not self._is_warm and self._loop is not None:
            self._loop.call_soon_threadsafe(self.wake)

    async def _deliver(self) -> bool:
        """Deliver all lines and return whether there were any. Lines that cannot be delivered now are kept, up to the limits."""
        async with self._delivering:
            with self._lock:
                taken = {key: each.lines for key, each in self._logs.items() if each.lines}
                for key in taken:
                    self._logs[key].lines = []
            chunks = [
                self._chunk(key, lines, start)
                for key, lines in taken.items()
                for start in range(0, len(lines), LARGEST_CHUNK)
            ]
            try:
                if chunks:
                    await self._link.log(chunks)
            except (Unavailable, asyncio.CancelledError):
                with self._lock:
                    for key, lines in taken.items():
                        self._logs[key].lines[:0] = lines
                raise
            except Exception:
                log.exception("lines.dropped", extra={"runs": len(taken)})
            with self._lock:
                for key, lines in taken.items():
                    self._logs[key].delivered += len(lines)
                for key in [key for key, each in self._logs.items() if each.is_over and not each.lines]:
                    del self._logs[key]
            return bool(chunks)

    def _chunk(self, key: Key, lines: list[LogLine], start: int) -> LogChunk:
        attempt_log, (run_id, fence) = self._logs[key], key
        first = attempt_log.delivered + start + 1
        return LogChunk(run_id, attempt_log.attempt, fence, first, lines[start : start + LARGEST_CHUNK])
