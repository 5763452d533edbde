"""The worker as a child of this node: started, started again when it dies, and ended with us, whatever happens to us."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from datetime import timedelta

from foliot.clock import monotonic
from foliot.wiring.process import without_secrets
from foliot.wiring.worker_main import Orders

log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a dead worker is started again
STEADY = 60.0  # seconds of life after which a death is no longer one of a series
GONE_WITHIN = 2.5  # seconds after the grace


class WorkerProcess:
    """Its step lasts as long as the process does: run it in a loop without a time limit."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._process: Process | None = None
        self._deaths = 0
        self._is_stopping = False
        self._gone_by = 0.0  # on the monotonic clock, once it has been told to stop
        self._ended = asyncio.Event()
        self._ended.set()

    async def step(self) -> timedelta:
        if self._is_stopping:
            return timedelta(seconds=LONGEST_PAUSE)
        began = monotonic()
        self._ended.clear()
        try:
            code = await self._live()
        finally:
            self._process = None
            self._ended.set()
        if self._is_stopping:
            return timedelta(0)
        self._deaths = 1 if monotonic() - began > STEADY else self._deaths + 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._deaths - 1))
        log.error("worker.died", extra={"exit_code": code, "again_in": pause})
        return timedelta(seconds=pause)

    def terminate(self, *, at_once: bool = False) -> None:
        """It stops claiming, lets runs finish within the grace, and hands back the rest."""
        if not self._is_stopping:
            self._is_stopping = True
            self._gone_by = monotonic() + self._orders.grace + GONE_WITHIN
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill() if at_once else self._process.terminate()

    async def ended(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), self._gone_by - monotonic())
        if self._process is not None:
            log.error("worker.killed", extra={"pid": self._process.pid})
            self.terminate(at_once=True)
            await self._ended.wait()

    async def _live(self) -> int:
        # In a session of its own: a Ctrl-C in the terminal reaches us first, and we tell it. -P: what lies in the current
        # folder cannot pose as a library.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "foliot.wiring.worker_main",
            stdin=PIPE,
            stdout=sys.stderr,  # what jobs print is no answer of the server
            env=without_secrets(os.environ),
            start_new_session=True,
        )
        self._process = process
        assert process.stdin is not None
        with suppress(ConnectionError):  # it died before it read them
            process.stdin.write(self._orders.as_line())
            await process.stdin.drain()
        if self._is_stopping:
            self.terminate()
        return await process.wait()
