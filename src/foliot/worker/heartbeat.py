"""The heartbeat renews the worker's lease from a thread of its own, so that blocking code cannot delay it.

It also watches the worker's thread. A worker that cannot renew stops its work at two thirds of the lease. One whose event loop is
stuck, and so cannot stop, ends as a process before another worker may start the same run.

Why: docs/decisions/301-heartbeat-and-sweeper.md
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from foliot.clock import monotonic
from foliot.domain.errors import WorkerGone
from foliot.domain.ids import RunId, WorkerId
from foliot.services.workers.workers import BEATS_PER_LEASE, HeartbeatReply
from foliot.worker.link import Link
from foliot.worker.worker import Worker

log = logging.getLogger(__name__)

STUCK = 70  # exit code (EX_SOFTWARE)
BEAT_WITHIN = 10.0  # seconds
SLACK = 5.0  # seconds an attempt may outlast its deadline on a stuck loop; the sweeper waits longer
AT_ONCE, IDLE = timedelta(0), timedelta(seconds=30)
POLL_PAUSE = timedelta(seconds=0.25)  # after an empty answer: a server that stops answers all polls at once
Key = tuple[RunId, int]  # a run and its fence


class Heartbeat:
    """A loop in the heartbeat's thread runs its step. Other threads call `follow` and `beat_soon` only."""

    def __init__(
        self, link: Link, worker: Worker, worker_loop: asyncio.AbstractEventLoop, lease: timedelta
    ) -> None:
        self._link = link
        self._worker = worker
        self._worker_loop = worker_loop
        self._lease = lease.total_seconds()
        self._worker_id: WorkerId | None = None
        self._renewed_at = 0.0
        self._beat_at = 0.0
        self._is_hurried = False
        self._pinged_at: float | None = None  # since when the worker's loop owes an answer
        self._beating: asyncio.Task[None] | None = None

    def follow(self, worker_id: WorkerId, registered_at: float, lease: timedelta | None = None) -> None:
        """Renew this worker's lease from now on. `lease` is given where a remote server names it at registration."""
        if lease is not None:
            self._lease = lease.total_seconds()
        self._renewed_at = registered_at
        self._beat_at = registered_at + self._lease / BEATS_PER_LEASE
        self._worker_id = worker_id

    def beat_soon(self) -> None:
        """Beat at the next step: some worker's run was cancelled or taken away, maybe one of this worker's."""
        self._is_hurried = True

    async def step(self) -> timedelta:
        """Beat where it is time, and check the lease, whatever becomes of the beat: it may fail in any way, or hang for ever."""
        nap = min(1.0, self._lease / 20)
        if (worker_id := self._worker_id) is not None:
            if self._beating is None and (self._is_hurried or monotonic() >= self._beat_at):
                self._is_hurried = False
                self._beating = asyncio.create_task(self._beat(worker_id))
            if self._beating is not None and (await asyncio.wait([self._beating], timeout=nap))[0]:
                self._beating = None
                nap = min(nap, max(0.0, self._beat_at - monotonic()))
            if monotonic() - self._renewed_at > self._lease * 2 / 3 and self._worker_id == worker_id:
                self._call_worker(lambda: self._worker.stop_all("cannot renew"))
                self._worker_id = None
        self._watch()
        return timedelta(seconds=nap)

    async def _beat(self, worker_id: WorkerId) -> None:
        began = monotonic()
        try:
            async with asyncio.timeout(min(BEAT_WITHIN, self._lease / BEATS_PER_LEASE)):
                working_on = self._worker.working_on()
                beat = await self._link.beat(worker_id, working_on, draining=self._worker.is_draining)
        except Exception as error:  # noqa: BLE001  # whatever it is, the lease was not renewed
            self._beat_at = monotonic() + self._lease / 20
            reason = str(error) or type(error).__name__
            log.warning("heartbeat.missed", extra={"worker": str(worker_id), "reason": reason})
            return
        if self._worker_id != worker_id:
            return
        self._renewed_at, self._beat_at = began, began + self._lease / BEATS_PER_LEASE
        if not beat.is_alive:
            self._worker_id = None
        if beat.cancels or beat.gone or beat.has_unknown or not beat.is_alive:
            self._call_worker(lambda: self._worker.on_beat(beat))

    def _call_worker(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the worker has stopped
            self._worker_loop.call_soon_threadsafe(callback)

    def _watch(self) -> None:
        """Ping the worker's loop, and end the process where it does not answer and its work may not go on."""
        now = monotonic()
        if self._pinged_at is None:
            self._pinged_at = now
            self._call_worker(self._on_answer)
            return
        silent, first_due = now - self._pinged_at, self._worker.first_due()
        if first_due is None or silent < 1:
            return
        is_overdue = silent > SLACK and now > first_due + SLACK
        if is_overdue or now - self._renewed_at > self._lease * 0.9:
            log.critical("worker.stuck", extra={"seconds": round(silent, 1)})
            os._exit(STUCK)

    def _on_answer(self) -> None:
        self._pinged_at = None


class CancelSource(Protocol):
    async def stops(
        self, worker_id: WorkerId, working_on: Collection[Key], stopping: Collection[Key]
    ) -> HeartbeatReply: ...


class CancelPoll:
    """Let a request of a busy host wait at the server for cancels: the heartbeat alone would bring them up to a third of the lease later.

    A loop runs its step and is woken when a run starts.
    """

    def __init__(self, source: CancelSource, worker: Worker) -> None:
        self._source = source
        self._worker = worker

    async def step(self) -> timedelta:
        worker_id = self._worker.id
        going, stopping = self._worker.under_way()
        if worker_id is None or not going:
            return IDLE
        try:
            found = await self._source.stops(worker_id, going, stopping)
        except WorkerGone:  # the heartbeat learns it too, and stops the runs
            return IDLE
        if self._worker.id == worker_id:
            self._worker.on_beat(found)
        return AT_ONCE if {*found.cancels, *found.gone} & set(going) else POLL_PAUSE
