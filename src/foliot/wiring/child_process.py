"""A child process of a node: started, restarted with a growing pause when it dies, and ended with the node.

Why: docs/decisions/008-node-roles-and-child-processes.md
"""

from __future__ import annotations

import asyncio
import logging
import signal
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from foliot.clock import monotonic

log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a dead child is started again
STEADY = 60.0  # seconds of life after which a death no longer counts as one of a series
EXIT_WITHIN = 2.5  # seconds after the grace


class RunningProcess(Protocol):
    @property
    def pid(self) -> int: ...

    def send_signal(self, number: int, /) -> None: ...


class ChildProcess(ABC):
    """Its step lasts as long as the process does: run it in a loop without a time limit."""

    def __init__(self, name: str, grace: float) -> None:
        self.name = name
        self._grace = grace
        self._process: RunningProcess | None = None
        self._deaths = 0
        self._is_stopping = False
        self._kill_at = 0.0  # on the monotonic clock, once the child must stop
        self._exited = asyncio.Event()
        self._exited.set()

    async def step(self) -> timedelta:
        if self._is_stopping:
            return timedelta(seconds=LONGEST_PAUSE)
        began = monotonic()
        self._exited.clear()
        try:
            code = await self._run()
        finally:
            self._process = None
            self._exited.set()
        if self._is_stopping:
            return timedelta(0)
        self._deaths = 1 if monotonic() - began > STEADY else self._deaths + 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._deaths - 1))
        log.error("%s.died", self.name, extra={"exit_code": code, "again_in": pause})
        return timedelta(seconds=pause)

    def terminate(self, *, at_once: bool = False) -> None:
        """Make the child finish its work within the grace and exit."""
        if not self._is_stopping:
            self._is_stopping = True
            self._kill_at = monotonic() + self._grace + EXIT_WITHIN
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL if at_once else signal.SIGTERM)

    async def wait(self) -> None:
        """Wait until the process has exited; kill it when it is late."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), self._kill_at - monotonic())
        if self._process is not None:
            log.error("%s.killed", self.name, extra={"pid": self._process.pid})
            self.terminate(at_once=True)
            await self._exited.wait()

    def _started(self, process: RunningProcess) -> None:
        """Subclasses call this as soon as the process exists: a stop may have come before it."""
        self._process = process
        if self._is_stopping:
            self.terminate()

    @abstractmethod
    async def _run(self) -> int:
        """Start the process, hand it its settings and return its exit code."""
