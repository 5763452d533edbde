"""The moving parts of a node: the loops that tick, sweep and send, the listener for hints, and the worker process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foliot.engine.courier import Courier
from foliot.engine.hints import HintListener
from foliot.engine.janitor import Janitor, JanitorTask
from foliot.engine.loop import Loop
from foliot.engine.notifier import Notifier
from foliot.engine.scheduler import CHECK_EVERY, Scheduler
from foliot.engine.sweeper import EVERY, Sweeper
from foliot.engine.watcher import Watcher
from foliot.services.hints import Announcer, Hint
from foliot.services.notifications.dispatch import NotifierPolicy
from foliot.services.scheduling.tick import BATCH
from foliot.storage.tx import Database
from foliot.wiring.worker_process import WorkerProcess


@dataclass(frozen=True, slots=True)
class EnginePace:
    """The seconds between two looks of the loops, and how many due jobs a tick takes."""

    poll_interval: float = CHECK_EVERY
    poll_batch: int = BATCH
    sweep_interval: float = EVERY


INBOX_EVERY = 15.0  # seconds between looks for jobs inserted with SQL
STEP_ENDS_WITHIN = 1.0  # seconds for a step under way at a stop


class Engine:
    def __init__(
        self,
        database: Database,
        listen_url: str,
        worker: WorkerProcess | None = None,
        *,
        janitor_tasks: Sequence[JanitorTask] = (),
        inbox_task: JanitorTask | None = None,
        courier: Courier | None = None,
        policy: Callable[[], NotifierPolicy] | None = None,
        watcher: Watcher | None = None,
        is_scheduling: bool = True,
        pace: EnginePace | None = None,
    ) -> None:
        """A node that is not scheduling leaves firing and sweeping to other nodes; without a watcher, sending as well.

        `policy` decides about notifications.
        """
        self._announcer = Announcer(database)
        announce = self._announcer.announce
        pace = pace or EnginePace()
        scheduler = Scheduler(database, announce, check_every=pace.poll_interval, batch=pace.poll_batch)
        self._scheduler = Loop("scheduler", scheduler.step)
        self._is_scheduling = is_scheduling
        self._loops: list[Loop] = []
        wakes: dict[Hint, Callable[[], None]] = {}
        if is_scheduling:
            self._loops += [
                self._scheduler,
                Loop("sweeper", Sweeper(database, announce, every=pace.sweep_interval).step),
            ]
            wakes[Hint.TIMERS] = self._scheduler.wake
        if is_scheduling and janitor_tasks:
            self._loops.append(Loop("janitor", Janitor(janitor_tasks).step))
        if is_scheduling and inbox_task is not None:
            self._loops.append(Loop("job_inbox", Janitor([inbox_task], every=INBOX_EVERY).step))
        is_sending = is_scheduling or watcher is not None  # a watcher must be heard while no scheduler runs
        if watcher is not None:
            self._loops.append(Loop("watcher", watcher.step))
        self._courier = courier if is_sending else None
        if self._courier is not None:
            sending = Loop("courier", self._courier.step)
            self._courier.wake = wakes[Hint.OUTBOX] = sending.wake
            self._loops.append(sending)
        if is_sending and policy is not None:
            self._loops.append(Loop("notifier", Notifier(database, announce, policy).step))
        self._hints = Loop("hints", HintListener(database, listen_url, wakes).step, within=None)
        self._worker = worker
        self._worker_loop = Loop("worker", worker.step, within=None) if worker else None
        self._tasks: list[asyncio.Task[None]] = []
        self._endless: list[asyncio.Task[None]] = []  # their steps do not end by themselves

    @property
    def missing(self) -> list[str]:
        return ["scheduler"] if self._is_scheduling and not self._scheduler.is_running else []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(loop.run(), name=loop.name) for loop in self._loops]
        self._endless = [asyncio.create_task(self._hints.run(), name="hints")]
        if self._worker_loop is not None:
            self._endless.append(asyncio.create_task(self._worker_loop.run(), name="worker"))

    def drain(self, *, at_once: bool = False) -> None:
        """Make the worker stop claiming; the loops go on until `stop`."""
        if self._worker is not None and self._worker_loop is not None:
            self._worker_loop.stop()
            self._worker.terminate(at_once=at_once)

    async def stop(self) -> None:
        self.drain()
        if self._worker is not None:
            await self._worker.wait()
        for loop in self._loops:
            loop.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STEP_ENDS_WITHIN)
        if left := [*self._tasks, *self._endless]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)
        if self._courier is not None:
            await self._courier.close()
        await self._announcer.close()
