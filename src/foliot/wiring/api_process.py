"""The HTTP server of a node as a child process: no request can delay the engine, and its death stops nothing else.

The first one is forked before the node starts anything, so that it shares the memory of everything imported. Later ones are new
programs, because a process with threads must not fork.

Why: docs/decisions/008-node-roles-and-child-processes.md
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from foliot.settings import Settings
from foliot.wiring import api_main
from foliot.wiring.child_process import ChildProcess, RunningProcess

log = logging.getLogger(__name__)
FIRST_FREE_DESCRIPTOR = 3


@dataclass(slots=True)
class ForkedProcess:
    """A process forked from this one, and our end of the socket between them."""

    pid: int
    control: socket.socket
    exit_code: int | None = None

    def send_signal(self, number: int, /) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        if self.exit_code is None:
            self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.exit_code

    def end(self) -> None:
        """End the process unless it has ended: its number may belong to another by then."""
        if self.exit_code is None:
            self.send_signal(signal.SIGKILL)
            self.wait()


def fork_api_processes(count: int, listening: socket.socket) -> list[ForkedProcess]:
    """Fork the HTTP processes. Each waits for its settings, and ends when this process does."""
    return [_fork(listening) for _ in range(count)]


def _fork(listening: socket.socket) -> ForkedProcess:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _become_api(listening, theirs)
    theirs.close()
    return ForkedProcess(pid, ours)


def _become_api(listening: socket.socket, control: socket.socket) -> NoReturn:
    """Run the HTTP server in the forked process, and never return into the frames of its parent."""
    code = 1
    try:
        os.setsid()  # a Ctrl-C in the terminal must reach the node first, which then stops this process
        _close_all_but(listening.fileno(), control.fileno())
        api_main.run(listening, control)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # as the interpreter does at the end of a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _close_all_but(*kept: int) -> None:
    """Close what the parent has open: a lock or the pipe of a sibling would outlive the parent here."""
    begin = FIRST_FREE_DESCRIPTOR
    for each in sorted(kept):
        os.closerange(begin, each)
        begin = each + 1
    os.closerange(begin, os.sysconf("SC_OPEN_MAX"))


class ApiProcess(ChildProcess):
    """One HTTP process. `assignment` is known when the database is open."""

    def __init__(
        self,
        settings: Settings,
        listening: socket.socket,
        assignment: api_main.ApiAssignment,
        forked: ForkedProcess,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__("api", settings.shutdown_grace)
        self._settings = settings
        self._listening = listening
        self._assignment = assignment
        self._forked: ForkedProcess | None = forked
        self._on_ready = on_ready
        self._writer: asyncio.StreamWriter | None = None

    def tell(self, missing: Sequence[str]) -> None:
        """Tell the process what the engine lacks, for /readyz. It regards a silent engine as not ready."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(list(missing)).encode() + b"\n")

    async def _run(self) -> int:
        forked, self._forked = self._forked, None
        process: RunningProcess
        if forked is not None:
            process, control, wait = forked, forked.control, forked.wait
        else:
            process, control, wait = self._execute()
        self._started(process)
        reader, self._writer = await asyncio.open_connection(sock=control)
        with suppress(ConnectionError):  # it died: its exit code says why
            self._writer.write(self._assignment.to_json() + self._settings.to_json())
            await self._writer.drain()
            if await reader.readline():
                self._on_ready()
            await reader.read()
        self._writer.close()
        return await asyncio.to_thread(wait)

    def _execute(self) -> tuple[RunningProcess, socket.socket, Callable[[], int]]:
        """Start the process as a program of its own."""
        ours, theirs = socket.socketpair()
        with theirs:
            numbers = (self._listening.fileno(), theirs.fileno())
            started = subprocess.Popen(
                (sys.executable, "-P", "-m", "foliot.wiring.api_main", *map(str, numbers)),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                pass_fds=numbers,
                start_new_session=True,
            )
        return started, ours, started.wait
