"""Programs that a worker starts, each under a supervisor: everything that a program starts ends with it."""

from __future__ import annotations

import asyncio
import marshal
import signal
import socket
import sys
from ast import literal_eval
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from foliot.handlers import supervisor
from foliot.handlers.sandbox import Sandbox

STOPS_WITHIN = 1.0  # seconds between SIGTERM and SIGKILL
SLACK = 1.0  # seconds that a supervisor may take beyond its deadlines
# Without `site`, and imported rather than run, so that it is compiled once. Its folder comes last: some modules in it have names of
# the standard library.
SUPERVISOR_ARGS = (
    "-I",
    "-S",
    "-c",
    f"import sys; sys.path.append({str(Path(supervisor.__file__).parent)!r}); import supervisor; supervisor.main()",
)


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one program and all that it starts; memory is that of each process."""

    memory: int | None = None  # bytes
    processes: int | None = None

    @classmethod
    def of(cls, mebibytes: int, processes: int) -> ProcessLimits:
        """Take the limits from the settings, where 0 is no limit."""
        return cls(mebibytes * 1024 * 1024 or None, processes or None)


@dataclass(frozen=True, slots=True)
class Program:
    argv: Sequence[str]
    cwd: str | None = None  # None is the worker's
    env: Mapping[str, str] | None = None  # None is the worker's
    limits: ProcessLimits = ProcessLimits()
    sandbox: Sandbox = Sandbox()

    def to_bytes(self) -> bytes:
        """Serialize for the supervisor, behind the length. `marshal` suits: it runs the same interpreter and need not import a module."""
        fields = {
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": None if self.env is None else dict(self.env),
            "stops_within": STOPS_WITHIN,
            **asdict(self.limits),
            **self.sandbox.for_supervisor,
        }
        packed = marshal.dumps(fields)
        return len(packed).to_bytes(4, "big") + packed


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a program. Without code and signal it was never started, and `reason` says why."""

    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None
    is_crowded: bool = False  # it was ended because it started too many processes

    @property
    def how(self) -> str:
        return f"signal {self.signal}" if self.signal else f"exit code {self.exit_code}"


class SupervisedProcess:
    """A program under its supervisor. `stdin`, `stdout` and `stderr` of the process are the program's own."""

    def __init__(self, process: Process, reports: StreamReader, control: StreamWriter) -> None:
        self.process = process
        self._reports = reports
        self._control = control
        self._exit: asyncio.Task[ProcessExit] | None = None

    @classmethod
    async def start(cls, program: Program, *, stderr: int | None = None) -> SupervisedProcess:
        ours, theirs = socket.socketpair()
        with theirs:
            command = (sys.executable, *SUPERVISOR_ARGS, str(theirs.fileno()))
            # In a session of its own: a Ctrl-C in the terminal must reach the server only.
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=stderr,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        reports, control = await asyncio.open_connection(sock=ours)
        control.write(program.to_bytes())
        return cls(process, reports, control)

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    async def wait(self) -> ProcessExit:
        """Wait until the program and all that it started have ended.

        Several callers may wait, but none while the output is being read: unread output is dropped.
        """
        if self._exit is None:
            self._exit = asyncio.create_task(self._wait())
        return await asyncio.shield(self._exit)

    def terminate(self) -> None:
        """Send SIGTERM to the program; its output can be read until it ends."""
        self._control.write(b"T")

    async def stop(self, *, at_once: bool = False, group: bool = False) -> None:
        """Stop the program and all that it started: by SIGTERM, to its whole group with `group`, then by force."""
        exited = asyncio.ensure_future(self.wait())
        try:
            if not at_once:
                self._control.write(b"G" if group else b"T")
                # Not asyncio.timeout: in a task that is being cancelled, Python before 3.11.4 lets its own cancellation out.
                await asyncio.wait([exited], timeout=STOPS_WITHIN + SLACK)
        finally:
            self._control.close()  # which makes the supervisor kill them all
            await asyncio.wait([exited], timeout=supervisor.GIVE_UP + SLACK)
            if not exited.done():
                with suppress(ProcessLookupError):
                    self.process.kill()
        await exited

    async def _wait(self) -> ProcessExit:
        try:
            line = await self._reports.readline()
        except ConnectionError:
            line = b""
        self._close_output()
        await self.process.wait()
        self._control.close()
        # The pipes would be closed in a later turn of the loop, which there may not be.
        self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio offers no other access
        return _parse_exit(line)

    def _close_output(self) -> None:
        """Close the output pipes: their readers have read to the end or have left.

        In Python 3.11 `wait` returns only once all pipes are at their end, and a full one that nobody reads never is.
        """
        transport = self.process._transport  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio offers no other access
        for stream in (1, 2):
            if (pipe := transport.get_pipe_transport(stream)) is not None:
                pipe.close()


def _parse_exit(line: bytes) -> ProcessExit:
    if not line:
        return ProcessExit(signal="SIGKILL", reason="Its supervisor was killed.")
    report = literal_eval(line.decode())
    if "not_started" in report:
        return ProcessExit(reason=report["not_started"])
    code, crowded = report["code"], report["crowded"]
    if code is None:
        return ProcessExit(signal="SIGKILL", reason="It could not be killed.", is_crowded=crowded)
    if code < 0:
        return ProcessExit(signal=_signal_name(-code), is_crowded=crowded)
    return ProcessExit(exit_code=code, is_crowded=crowded)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time ones have no names
        return f"SIG{number}"
