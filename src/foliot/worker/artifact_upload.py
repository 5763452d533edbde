"""Upload artifacts: added from any thread, stored before their attempt is reported."""

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
from foliot.sdk.context import StoreArtifact, never_stopping
from foliot.services.runs.artifacts import NewArtifact
from foliot.worker.link import Link
from foliot.worker.output_masking import masked_file

log = logging.getLogger(__name__)

TRIES, PAUSE = 5, 1.0  # seconds between tries, while the database does not answer
AT_ONCE = 2  # uploads
TOO_LATE = "The attempt that it belongs to is over."
Key = tuple[RunId, int]  # a run and its fence


class ArtifactUpload:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._sending = asyncio.Semaphore(AT_ONCE)
        self._uploads: dict[Key, list[Future[str | None]]] = {}
        self._lock = threading.Lock()

    def uploader(
        self,
        key: Key,
        attempt: int,
        worker_id: WorkerId,
        masks: Masks = NO_MASKS,
        is_over: Callable[[], bool] = never_stopping,
    ) -> StoreArtifact:
        """Return a function that any thread may call to upload an artifact; it uploads nothing once `is_over`.

        Call this on the event loop that uploads.
        """
        return partial(self._keep, asyncio.get_running_loop(), key, attempt, worker_id, masks, is_over)

    def has_any(self, key: Key) -> bool:
        """Return whether the attempt has uploads. Once it is over, the answer does not change."""
        with self._lock:
            return key in self._uploads

    def drop(self, key: Key) -> None:
        """Cancel the uploads of an attempt that was ended."""
        with self._lock:
            for each in self._uploads.pop(key, ()):
                each.cancel()

    async def finish(self, key: Key) -> str | None:
        """Wait for the attempt's uploads; return the problem of the first that failed, if any."""
        with self._lock:
            sent = self._uploads.pop(key)
        problems = await asyncio.gather(*map(asyncio.wrap_future, sent))
        return next((each for each in problems if each is not None), None)

    def _keep(
        self,
        loop: asyncio.AbstractEventLoop,
        key: Key,
        attempt: int,
        worker_id: WorkerId,
        masks: Masks,
        is_over: Callable[[], bool],
        name: str,
        data: bytes,
        media_type: str,
    ) -> Future[str | None]:
        given = NewArtifact(*key, worker_id, attempt, name, media_type, data)
        with self._lock:
            if is_over():
                sent: Future[str | None] = Future()
                sent.set_result(TOO_LATE)
                return sent
            sent = asyncio.run_coroutine_threadsafe(self._store(given, masks), loop)
            self._uploads.setdefault(key, []).append(sent)
        return sent

    async def _store(self, given: NewArtifact, masks: Masks) -> str | None:
        """Store an artifact and return the problem, if any: one bad file must not keep its run from being reported."""
        async with self._sending:
            try:
                if masks:
                    data = await asyncio.to_thread(masked_file, masks, given.data, given.media_type)
                    given = replace(given, data=data)
                await self._send(given)
            except FoliotError as error:
                return error.message
            except Exception as error:
                log.exception("artifact.upload_failed", extra={"run": str(given.run_id)})
                return f"{type(error).__name__}: {error}"
        return None

    async def _send(self, given: NewArtifact) -> None:
        for tries_left in reversed(range(TRIES)):
            try:
                await self._link.artifact(given)
            except Unavailable:
                if not tries_left:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                return
