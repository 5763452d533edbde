"""Buffer the progress of runs: the last value of each, delivered together once a second at most."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from foliot.clock import Clock, SystemClock
from foliot.domain.errors import FoliotError
from foliot.domain.ids import RunId
from foliot.domain.logs import storable
from foliot.domain.masking import NO_MASKS, Masks
from foliot.domain.run import LONGEST_NOTE, Progress
from foliot.sdk.context import ReportProgress, never_stopping
from foliot.worker.link import Link

log = logging.getLogger(__name__)

SOON, IDLE = timedelta(seconds=1), timedelta(seconds=30)
Key = tuple[RunId, int]  # a run and its fence


class ProgressBuffer:
    """A loop runs its step and sets `wake`. Any thread may report progress."""

    def __init__(self, link: Link, clock: Clock | None = None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._link = link
        self._clock = clock or SystemClock()
        self._new: dict[Key, Progress] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_warm = False  # the next delivery comes soon, without a wake

    def writer(
        self, key: Key, masks: Masks = NO_MASKS, is_over: Callable[[], bool] = never_stopping
    ) -> ReportProgress:
        """Return a function that records progress of this attempt, until `is_over`."""
        return partial(self._record, key, masks, is_over)

    def forget(self, key: Key) -> None:
        """Drop the undelivered progress of an attempt that is over. Most never report any."""
        if self._new:
            with self._lock:
                self._new.pop(key, None)

    async def step(self) -> timedelta:
        self._loop = asyncio.get_running_loop()
        with self._lock:
            latest, self._new = self._new, {}
        self._is_warm = bool(latest)
        if latest:
            try:
                await self._link.progress(latest)
            except FoliotError as error:  # the next one will do
                log.warning("progress.dropped", extra={"runs": len(latest), "reason": error.message})
        return SOON if latest else IDLE

    def _record(
        self, key: Key, masks: Masks, is_over: Callable[[], bool], done: float, total: float, note: str
    ) -> None:
        if math.isfinite(done) and math.isfinite(total) and not is_over():
            progress = Progress(
                done, total, storable(masks.text(str(note)))[:LONGEST_NOTE], self._clock.now()
            )
            with self._lock:
                self._new[key] = progress
            if not self._is_warm and self._loop is not None:
                self._loop.call_soon_threadsafe(self.wake)
