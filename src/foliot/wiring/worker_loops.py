"""A worker with the loops that serve it, and its heartbeat in a thread: the same on a node and on a remote host."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta

from foliot.domain.errors import FoliotError
from foliot.engine.loop import Loop
from foliot.handlers.registry import Handler
from foliot.worker.heartbeat import STUCK, Heartbeat
from foliot.worker.link import Link
from foliot.worker.worker import EXTERNAL_RUNS, Worker

log = logging.getLogger(__name__)
LAST_REPORTS_WITHIN = 0.75  # seconds
OpenLink = Callable[[], AbstractAsyncContextManager[Link]]
ServerLease = Callable[[], timedelta | None]


class WorkerLoops:
    """Claim, report, and deliver logs and progress, each in a loop of its own."""

    def __init__(
        self,
        link: Link,
        handlers: Mapping[str, Handler],
        permits: int,
        external_runs: int = EXTERNAL_RUNS,
        *,
        reserve: int = 0,
        last_reports_within: float = LAST_REPORTS_WITHIN,
    ) -> None:
        self.worker = worker = Worker(link, handlers, permits, reserve=reserve, external_runs=external_runs)
        self.claims, reports = Loop("claim", worker.step), Loop("report", worker.reporter.step)
        logs, progress = Loop("logs", worker.logs.step), Loop("progress", worker.progress.step)
        worker.wake, worker.reporter.wake = self.claims.wake, reports.wake
        worker.logs.wake, worker.progress.wake = logs.wake, progress.wake
        worker.reporter.on_accepted = self.claims.wake  # the end of one run may let another start
        self.loops = [self.claims, reports, logs, progress]
        self._link = link
        self._last_reports_within = last_reports_within

    async def run(self, stopping: asyncio.Event, grace: float, *, cancel_claim: bool) -> None:
        """Work until `stopping` is set; then finish runs within the grace, hand back the rest, report and leave.

        `cancel_claim` ends a claim that waits at a server; `leave` then returns the runs that it may have claimed.
        """
        claiming, *others = tasks = [asyncio.create_task(loop.run()) for loop in self.loops]
        await stopping.wait()
        log.info("worker.draining", extra={"grace": grace})
        if cancel_claim:
            claiming.cancel()
        else:
            self.claims.stop()
        await self.worker.drain(grace)
        if not cancel_claim:
            await asyncio.wait([claiming], timeout=LAST_REPORTS_WITHIN)  # its runs are handed back too
        await self.worker.reporter.wait_until_sent(self._last_reports_within)
        await self._leave()
        for task in (claiming, *others):
            task.cancel()
        await asyncio.wait(tasks)

    async def _leave(self) -> None:
        if self.worker.id is not None:
            with suppress(FoliotError, TimeoutError):  # else the sweeper finds that the worker is gone
                async with asyncio.timeout(self._last_reports_within):
                    await self._link.leave(self.worker.id)


class HeartbeatThread:
    """Run the heartbeat in a thread with a loop and a link of its own, as long as the block lasts."""

    def __init__(
        self, worker: Worker, lease: timedelta, open_link: OpenLink, server_lease: ServerLease = lambda: None
    ) -> None:
        """`open_link` is called in the thread. `server_lease` returns the lease that a remote server named at registration."""
        self._worker = worker
        self._lease = lease
        self._open_link = open_link
        self._server_lease = server_lease
        self._worker_loop = asyncio.get_running_loop()
        self._stop: Future[Callable[[], None]] = Future()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    async def __aenter__(self) -> None:
        self._thread.start()
        await asyncio.wrap_future(self._stop)

    async def __aexit__(self, *_: object) -> None:
        self._stop.result()()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        except BaseException as error:
            if self._stop.done():
                log.exception("heartbeat.failed")
                os._exit(
                    STUCK
                )  # without a heartbeat the runs would be given to others while this worker goes on
            self._stop.set_exception(error)

    async def _beat(self) -> None:
        async with self._open_link() as link:
            heartbeat = Heartbeat(link, self._worker, self._worker_loop, self._lease)
            beats, here = Loop("heartbeat", heartbeat.step), asyncio.get_running_loop()
            self._worker.on_registered = lambda worker_id, at: heartbeat.follow(
                worker_id, at, self._server_lease()
            )

            def beat_soon() -> None:
                heartbeat.beat_soon()
                call_soon(here, beats.wake)

            self._worker.beat_soon = beat_soon
            self._stop.set_result(lambda: call_soon(here, beats.stop))
            await beats.run()


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    return stopping


def call_soon(loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # that loop is closed already
        loop.call_soon_threadsafe(do)
