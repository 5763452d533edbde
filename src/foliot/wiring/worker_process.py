"""The node's worker as a child process: started, restarted when it dies, and ended with the node, however the node ends.

Why: docs/decisions/008-node-roles-and-worker-process.md
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from datetime import timedelta

from foliot.clock import monotonic
from foliot.settings import Settings
from foliot.wiring.process import without_secrets

log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a dead worker is started again
STEADY = 60.0  # seconds of life after which a death no longer counts as one of a series
EXIT_WITHIN = 2.5  # seconds after the grace


class WorkerProcess:
    """Its step lasts as long as the process does: run it in a loop without a time limit."""

    def __init__(self, settings: Settings, database_url: str) -> None:
        self._settings = settings
        self._database_url = database_url
        self._process: Process | None = None
        self._deaths = 0
        self._is_stopping = False
        self._kill_at = 0.0  # on the monotonic clock, once the worker must stop
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
        log.error("worker.died", extra={"exit_code": code, "again_in": pause})
        return timedelta(seconds=pause)

    def terminate(self, *, at_once: bool = False) -> None:
        """Make the worker stop claiming, finish its runs within the grace, and hand back the rest."""
        if not self._is_stopping:
            self._is_stopping = True
            self._kill_at = monotonic() + self._settings.worker_grace + EXIT_WITHIN
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill() if at_once else self._process.terminate()

    async def wait(self) -> None:
        """Wait until the process has exited; kill it when it is late."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), self._kill_at - monotonic())
        if self._process is not None:
            log.error("worker.killed", extra={"pid": self._process.pid})
            self.terminate(at_once=True)
            await self._exited.wait()

    async def _run(self) -> int:
        """Start the process, send it its settings and wait for its exit code."""
        # In a session of its own: a Ctrl-C in the terminal must reach the node first, which then stops the worker.
        # -P: no file in the current folder may replace a library.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "foliot.wiring.worker_main",
            stdin=PIPE,
            stdout=sys.stderr,  # the server's own stdout is not for the output of jobs
            env=without_secrets(os.environ),
            start_new_session=True,
        )
        self._process = process
        assert process.stdin is not None
        with suppress(ConnectionError):  # it died before it read them
            process.stdin.write(self._database_url.encode() + b"\n" + self._settings.to_json())
            await process.stdin.drain()
        if self._is_stopping:
            self.terminate()
        return await process.wait()
