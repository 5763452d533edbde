"""How far the runs of this worker are: the last word of each, delivered together once a second at most."""

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
from foliot.domain.progress import LONGEST_NOTE, Progress
from foliot.sdk.context import Tell
from foliot.worker.link import Link

log = logging.getLogger(__name__)

SOON, IDLE = timedelta(seconds=1), timedelta(seconds=30)
Key = tuple[RunId, int]  # a run under its fence


class ProgressBuffer:
    """Its step is run by a loop; `wake` is set by whoever puts the parts together. Words may come from any thread."""

    def __init__(self, link: Link, clock: Clock | None = None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._link = link
        self._clock = clock or SystemClock()
        self._new: dict[Key, Progress] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_warm = False  # the next delivery comes soon, without being asked for

    def teller(self, run_id: RunId, fence: int, masks: Masks = NO_MASKS) -> Tell:
        return partial(self._tell, (run_id, fence), masks)

    def forget(self, run_id: RunId, fence: int) -> None:
        """It is over. Most never tell anything."""
        if self._new:
            with self._lock:
                self._new.pop((run_id, fence), None)

    async def step(self) -> timedelta:
        self._loop = asyncio.get_running_loop()
        with self._lock:
            told, self._new = self._new, {}
        self._is_warm = bool(told)
        if told:
            try:
                await self._link.progress(told)
            except FoliotError as error:  # the next word will do
                log.warning("progress.dropped", extra={"runs": len(told), "reason": error.message})
        return SOON if told else IDLE

    def _tell(self, key: Key, masks: Masks, done: float, total: float, note: str) -> None:
        if math.isfinite(done) and math.isfinite(total):
            said = Progress(done, total, storable(masks.text(str(note)))[:LONGEST_NOTE], self._clock.now())
            with self._lock:
                self._new[key] = said
            if not self._is_warm and self._loop is not None:
                self._loop.call_soon_threadsafe(self.wake)
