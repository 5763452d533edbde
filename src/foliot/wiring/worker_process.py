"""The node's worker as a child process, which ends with the node, however the node ends.

Why: docs/decisions/008-node-roles-and-child-processes.md
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress

from foliot.settings import Settings
from foliot.wiring.child_process import ChildProcess
from foliot.wiring.process import without_secrets


class WorkerProcess(ChildProcess):
    def __init__(self, settings: Settings, database_url: str) -> None:
        super().__init__("worker", settings.worker_grace)
        self._settings = settings
        self._database_url = database_url

    async def _run(self) -> int:
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
        self._started(process)
        assert process.stdin is not None
        with suppress(ConnectionError):  # it died before it read them
            process.stdin.write(self._database_url.encode() + b"\n" + self._settings.to_json())
            await process.stdin.drain()
        return await process.wait()
