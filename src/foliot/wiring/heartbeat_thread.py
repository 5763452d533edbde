"""The heart of a worker in its thread, and the last words when it goes: the same for a worker here and for a host elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta

from foliot.domain.errors import FoliotError
from foliot.domain.ids import WorkerId
from foliot.engine.loop import Loop
from foliot.worker.heartbeat import STUCK, Heartbeat
from foliot.worker.link import Link
from foliot.worker.worker import Worker

log = logging.getLogger(__name__)
LAST_WORDS_WITHIN = 0.75  # seconds
OpenLink = Callable[[], AbstractAsyncContextManager[Link]]
ServerLease = Callable[[], timedelta | None]


class HeartbeatThread:
    """The heart in a thread with a loop and a line of its own, for as long as this block lasts."""

    def __init__(
        self, worker: Worker, lease: timedelta, line: OpenLink, told: ServerLease = lambda: None
    ) -> None:
        """`line` is opened in the heart's thread. `told` is the lease that a server elsewhere named when the worker registered."""
        self._worker = worker
        self._lease = lease
        self._line = line
        self._told = told
        self._body = asyncio.get_running_loop()
        self._stop: Future[Callable[[], None]] = Future()
        self._thread = threading.Thread(target=self._live, name="heart", daemon=True)

    async def __aenter__(self) -> None:
        self._thread.start()
        await asyncio.wrap_future(self._stop)

    async def __aexit__(self, *_: object) -> None:
        self._stop.result()()
        await asyncio.to_thread(self._thread.join)

    def _live(self) -> None:
        try:
            asyncio.run(self._beat())
        except BaseException as error:
            if self._stop.done():
                log.exception("heart.failed")
                os._exit(STUCK)  # without a heart the runs would be given to others while we work on
            self._stop.set_exception(error)

    async def _beat(self) -> None:
        async with self._line() as link:
            heart = Heartbeat(link, self._worker, self._body, self._lease)
            beats, here = Loop("heart", heart.step), asyncio.get_running_loop()
            self._worker.when_registered = lambda worker_id, at: heart.follow(worker_id, at, self._told())

            def beat_soon() -> None:
                heart.beat_soon()
                call_soon(here, beats.wake)

            self._worker.beat_soon = beat_soon
            self._stop.set_result(lambda: call_soon(here, beats.stop))
            await beats.run()


def call_soon(loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # that loop is over already
        loop.call_soon_threadsafe(do)


async def leave(link: Link, worker_id: WorkerId | None, within: float = LAST_WORDS_WITHIN) -> None:
    if worker_id is not None:
        with suppress(FoliotError, TimeoutError):  # else the sweeper finds that we are gone
            async with asyncio.timeout(within):
                await link.leave(worker_id)
