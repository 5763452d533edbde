"""The logbook: lines that runs write, gathered for a moment, delivered together, bounded for each attempt."""

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
from foliot.sdk.context import Write
from foliot.services.runs.logs import LogChunk
from foliot.worker.link import Link
from foliot.worker.output_masking import MaskedLines

log = logging.getLogger(__name__)

SOON, IDLE = timedelta(seconds=0.25), timedelta(seconds=30)
LARGEST_CHUNK = 500  # lines
FINISH_WITHIN = 1.0  # seconds that the end of an attempt waits for its last lines to be kept
Key = tuple[RunId, int]  # a run under its fence


def not_yet() -> bool:
    return False


@dataclass(slots=True)
class AttemptLog:
    """What one attempt wrote. One line beyond what is kept is passed on, so that the head says that there were more.

    Lines are numbered: of a delivery whose answer was lost, and which comes again with more behind it, each is kept once.
    """

    attempt: int
    head: LogHead = field(default_factory=LogHead)
    lines: list[LogLine] = field(default_factory=list)
    delivered: int = 0
    is_over: bool = False  # nobody writes here any more
    masks: Masks = NO_MASKS
    masked: dict[LogStream, MaskedLines] = field(default_factory=dict)

    def add(self, lines: list[LogLine]) -> None:
        kept, self.head = fitting(self.head, lines)
        self.lines += lines[: len(kept) + 1]

    def add_masked(self, kind: LogStream, lines: list[LogLine]) -> None:
        """Lines are made to fit when the secrets are out of them: half of one would not be known for one."""
        if kind not in self.masked:
            self.masked[kind] = MaskedLines(self.masks)
        self.add([replace(line, text=fitted(line.text)) for line in self.masked[kind].take(lines)])

    def end(self) -> None:
        self.is_over = True
        for held in self.masked.values():
            self.add([replace(line, text=fitted(line.text)) for line in held.rest()])


class LogBuffer:
    """Its step is run by a loop; `wake` is set by whoever puts the parts together. Lines may be written from any thread."""

    def __init__(self, link: Link, clock: Clock | None = None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._link = link
        self._clock = clock or SystemClock()
        self._pages: dict[Key, AttemptLog] = {}
        self._writing = threading.Lock()
        self._delivering = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_warm = False  # the next delivery comes soon, without being asked for

    def writer(
        self,
        run_id: RunId,
        fence: int,
        attempt: int,
        masks: Masks = NO_MASKS,
        is_over: Callable[[], bool] = not_yet,
    ) -> Write:
        """Once `is_over`, nothing is written any more: nobody would turn the page."""
        return partial(self._write, (run_id, fence), attempt, masks, is_over)

    async def step(self) -> timedelta:
        self._loop = asyncio.get_running_loop()
        self._is_warm = await self._deliver()
        return SOON if self._is_warm else IDLE

    def has_lines_of(self, key: Key) -> bool:
        """Most attempts write nothing. Asked after the attempt is over, the answer stays true."""
        with self._writing:
            return key in self._pages

    async def finish(self, run_id: RunId, fence: int) -> None:
        """Before the end of an attempt is reported: whoever follows the run stops at its end."""
        page = self._pages.get((run_id, fence))
        if page is None:
            return
        with self._writing:
            page.end()
        try:
            async with asyncio.timeout(FINISH_WITHIN):
                await self._deliver()
        except (Unavailable, TimeoutError) as error:
            log.warning("lines.late", extra={"run": str(run_id), "reason": str(error)})

    def _write(
        self, key: Key, attempt: int, masks: Masks, is_over: Callable[[], bool], stream: str, text: str
    ) -> None:
        now, kind = self._clock.now(), LogStream(stream)
        with self._writing:
            if is_over():  # a thread or a task that outlives its attempt
                return
            page = self._pages.get(key) or self._pages.setdefault(key, AttemptLog(attempt, masks=masks))
            if page.head.truncated:
                return
            if masks:
                page.add_masked(kind, [LogLine(now, kind, line) for line in whole_lines(text)])
            else:
                page.add([LogLine(now, kind, line) for line in lines_of(text)])
        if not self._is_warm and self._loop is not None:
            self._loop.call_soon_threadsafe(self.wake)

    async def _deliver(self) -> bool:
        """Whether there was anything. What cannot be delivered now is kept, as far as the bounds go."""
        async with self._delivering:
            with self._writing:
                taken = {key: page.lines for key, page in self._pages.items() if page.lines}
                for key in taken:
                    self._pages[key].lines = []
            chunks = [
                self._chunk(key, lines, start)
                for key, lines in taken.items()
                for start in range(0, len(lines), LARGEST_CHUNK)
            ]
            try:
                if chunks:
                    await self._link.log(chunks)
            except (Unavailable, asyncio.CancelledError):
                with self._writing:
                    for key, lines in taken.items():
                        self._pages[key].lines[:0] = lines
                raise
            except Exception:
                log.exception("lines.dropped", extra={"runs": len(taken)})
            with self._writing:
                for key, lines in taken.items():
                    self._pages[key].delivered += len(lines)
                for key in [key for key, page in self._pages.items() if page.is_over and not page.lines]:
                    del self._pages[key]
            return bool(chunks)

    def _chunk(self, key: Key, lines: list[LogLine], start: int) -> LogChunk:
        page, (run_id, fence) = self._pages[key], key
        first = page.delivered + start + 1
        return LogChunk(run_id, page.attempt, fence, first, lines[start : start + LARGEST_CHUNK])
