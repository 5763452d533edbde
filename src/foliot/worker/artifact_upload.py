"""Artifacts on their way in: handed over from any thread, stored before the end of their attempt is reported."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from foliot.domain.errors import FoliotError, Unavailable
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.masking import NO_MASKS, Masks
from foliot.sdk.context import Keep
from foliot.services.runs.artifacts import NewArtifact
from foliot.worker.link import Link
from foliot.worker.log_buffer import not_yet
from foliot.worker.output_masking import masked_file

log = logging.getLogger(__name__)

TRIES, PAUSE = 5, 1.0  # seconds between two, where the database does not answer
AT_ONCE = 2  # how many are sent at the same time
TOO_LATE = "The attempt that it belongs to is over."
Key = tuple[RunId, int]  # a run under its fence


class ArtifactUpload:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._sending = asyncio.Semaphore(AT_ONCE)
        self._under_way: dict[Key, list[Future[str | None]]] = {}
        self._adding = threading.Lock()

    @property
    def most_bytes(self) -> int:
        return self._link.most_artifact_bytes

    def keeper(
        self,
        run_id: RunId,
        fence: int,
        attempt: int,
        worker_id: WorkerId,
        masks: Masks = NO_MASKS,
        is_over: Callable[[], bool] = not_yet,
    ) -> Keep:
        """Called on the loop that stores; what it answers with may be called from any thread, and keeps nothing once `is_over`."""
        mine = NewArtifact(run_id, fence, worker_id, attempt, "", "", b"")
        return partial(self._keep, asyncio.get_running_loop(), mine, masks, is_over)

    def has_some_of(self, key: Key) -> bool:
        """Asked after the attempt is over, the answer stays true."""
        with self._adding:
            return key in self._under_way

    def drop(self, key: Key) -> None:
        """The attempt was ended: what is not stored yet need not be."""
        with self._adding:
            for each in self._under_way.pop(key, ()):
                each.cancel()

    async def finish(self, key: Key) -> str | None:
        """Once all of an attempt's are stored, or what was wrong with the first that could not be."""
        with self._adding:
            sent = self._under_way.pop(key)
        problems = await asyncio.gather(*map(asyncio.wrap_future, sent))
        return next((each for each in problems if each is not None), None)

    def _keep(
        self,
        loop: asyncio.AbstractEventLoop,
        mine: NewArtifact,
        masks: Masks,
        is_over: Callable[[], bool],
        name: str,
        data: bytes,
        media_type: str,
    ) -> Future[str | None]:
        given = replace(mine, name=name, media_type=media_type, data=data)
        with self._adding:
            if is_over():
                sent: Future[str | None] = Future()
                sent.set_result(TOO_LATE)
                return sent
            sent = asyncio.run_coroutine_threadsafe(self._store(given, masks), loop)
            self._under_way.setdefault((given.run_id, given.fence), []).append(sent)
        return sent

    async def _store(self, given: NewArtifact, masks: Masks) -> str | None:
        """What was wrong with it. One bad file must not keep its run from being reported."""
        async with self._sending:
            try:
                if masks:
                    data = await asyncio.to_thread(masked_file, masks, given.data, given.media_type)
                    given = replace(given, data=data)
                await self._send(given)
            except FoliotError as error:
                return error.message
            except Exception as error:
                log.exception("artifact.not_kept", extra={"run": str(given.run_id)})
                return f"{type(error).__name__}: {error}"
        return None

    async def _send(self, given: NewArtifact) -> None:
        for left in reversed(range(TRIES)):
            try:
                await self._link.artifact(given)
            except Unavailable:
                if not left:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                return
