"""A worker with its loops in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy
from foliot.engine.loop import Loop
from foliot.handlers import registry
from foliot.handlers.dependencies import EgressPolicy, HandlerDeps, QueueEngineUrls
from foliot.storage.tx import Database
from foliot.worker.link import LocalLink
from foliot.worker.worker import Worker

ALL = BridgePolicy(EVERYTHING, EVERYTHING)


class InProcessWorker:
    def __init__(
        self,
        database: Database,
        kind: str,
        engines: QueueEngineUrls,
        lease: timedelta,
        bridge_policy: BridgePolicy,
    ) -> None:
        self.link = LocalLink(database, "in-process", lease)
        deps = HandlerDeps(
            database, queue_engines=engines, egress_policy=EgressPolicy(bridge_policy=bridge_policy)
        )
        handlers: Mapping[str, Any] = {kind: registry.load_handlers(deps)[kind]}
        self.worker = Worker(self.link, handlers, permits=1)
        reporter, logs, progress = self.worker.reporter, self.worker.logs, self.worker.progress
        self._loops = [
            Loop("claim", self.worker.step),
            Loop("report", reporter.step),
            Loop("logs", logs.step),
            Loop("progress", progress.step),
        ]
        wakes = (each.wake for each in self._loops)
        self.worker.wake, reporter.wake, logs.wake, progress.wake = wakes
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self.tasks = [asyncio.create_task(each.run()) for each in self._loops]

    async def beat(self) -> None:
        assert self.worker.id is not None
        self.worker.on_beat(await self.link.beat(self.worker.id, self.worker.working_on(), draining=False))

    async def close(self) -> None:
        self._loops[0].stop()
        await self.worker.drain(0)
        await self.worker.reporter.wait_until_sent(5)
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)


@asynccontextmanager
async def run_in_process_worker(
    database: Database,
    kind: str,
    engines: QueueEngineUrls,
    lease: timedelta = timedelta(minutes=10),
    bridge_policy: BridgePolicy = ALL,
) -> AsyncIterator[InProcessWorker]:
    opened = InProcessWorker(database, kind, engines, lease, bridge_policy)
    opened.start()
    try:
        yield opened
    finally:
        await opened.close()
