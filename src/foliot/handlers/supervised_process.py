"""Programs that a worker starts, each under a keeper: whatever they start themselves ends with them."""

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

STOPS_WITHIN = 1.0  # seconds between the polite signal and the other one
SLACK = 1.0  # seconds that a keeper may take beyond what it promises
# Without `site`, and imported rather than run, so that it is compiled once. Its folder comes last: it has modules called as the
# library's own are.
SUPERVISOR_ARGS = (
    "-I",
    "-S",
    "-c",
    f"import sys; sys.path.append({str(Path(supervisor.__file__).parent)!r}); import supervisor; supervisor.main()",
)


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What one program may take, with all that it starts; memory is that of each process."""

    memory: int | None = None  # bytes
    processes: int | None = None

    @classmethod
    def of(cls, mebibytes: int, processes: int) -> ProcessLimits:
        """As the settings have them, where 0 is no limit."""
        return cls(mebibytes * 1024 * 1024 or None, processes or None)


@dataclass(frozen=True, slots=True)
class Program:
    argv: Sequence[str]
    cwd: str | None = None  # None: that of the worker
    env: Mapping[str, str] | None = None  # None: that of the worker
    bounds: ProcessLimits = ProcessLimits()
    confines: Sandbox = Sandbox()

    def as_orders(self) -> bytes:
        """For a keeper, which runs in the same interpreter: it needs no module to read them, and they come with their length."""
        orders = {
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": None if self.env is None else dict(self.env),
            "stops_within": STOPS_WITHIN,
            **asdict(self.bounds),
            **self.confines.orders,
        }
        packed = marshal.dumps(orders)
        return len(packed).to_bytes(4, "big") + packed


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """What became of a program. Neither code nor signal: it was never started, and `why` says so, or its keeper died with it."""

    exit_code: int | None = None
    signal: str | None = None
    why: str | None = None
    is_crowded: bool = False  # it was ended because it had started too many processes

    @property
    def how(self) -> str:
        return f"signal {self.signal}" if self.signal else f"exit code {self.exit_code}"


class SupervisedProcess:
    """A program under its keeper. `stdin`, `stdout` and `stderr` are the program's own."""

    def __init__(self, process: Process, told: StreamReader, orders: StreamWriter) -> None:
        self.process = process
        self._told = told
        self._orders = orders
        self._over: asyncio.Task[ProcessExit] | None = None

    @classmethod
    async def start(cls, program: Program, *, stderr: int | None = None) -> SupervisedProcess:
        ours, theirs = socket.socketpair()
        with theirs:
            command = (sys.executable, *SUPERVISOR_ARGS, str(theirs.fileno()))
            # In a session of its own: a Ctrl-C in the terminal is for the server.
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=stderr,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        told, orders = await asyncio.open_connection(sock=ours)
        orders.write(program.as_orders())
        return cls(process, told, orders)

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    async def ended(self) -> ProcessExit:
        """Once it is over with all that it had started. May be asked by several, and more than once, but not while somebody
        listens: what is not read by then is dropped.
        """
        if self._over is None:
            self._over = asyncio.create_task(self._wait())
        return await asyncio.shield(self._over)

    async def end(self, *, at_once: bool = False, group: bool = False) -> None:
        """Politely, then by force, and with everything that was started from it. `group`: those beside it are asked, too."""
        over = asyncio.ensure_future(self.ended())
        try:
            if not at_once:
                self._orders.write(b"G" if group else b"T")
                # Not asyncio.timeout: in a task that is being cancelled, Python before 3.11.4 lets its own cancellation out.
                await asyncio.wait([over], timeout=STOPS_WITHIN + SLACK)
        finally:
            self._orders.close()  # which is the order to kill them all
            await asyncio.wait([over], timeout=supervisor.GIVE_UP + SLACK)
            if not over.done():
                with suppress(ProcessLookupError):
                    self.process.kill()
        await over

    async def _wait(self) -> ProcessExit:
        try:
            line = await self._told.readline()
        except ConnectionError:
            line = b""
        self._hear_no_more()
        await self.process.wait()
        self._orders.close()
        # The pipes would be closed in a later turn of the loop, which there may not be.
        self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio has no other door to it
        return _ended(line)

    def _hear_no_more(self) -> None:
        """Whoever listened has heard the end or has left. In Python 3.11 `wait` returns only once all pipes are at their end,
        and one that is full and that nobody reads never is.
        """
        transport = self.process._transport  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio has no other door to it
        for stream in (1, 2):
            if (pipe := transport.get_pipe_transport(stream)) is not None:
                pipe.close()


def _ended(line: bytes) -> ProcessExit:
    if not line:
        return ProcessExit(signal="SIGKILL", why="Its keeper was killed.")
    told = literal_eval(line.decode())
    if "not_started" in told:
        return ProcessExit(why=told["not_started"])
    code, crowded = told["code"], told["crowded"]
    if code is None:
        return ProcessExit(signal="SIGKILL", why="It could not be killed.", is_crowded=crowded)
    if code < 0:
        return ProcessExit(signal=_named(-code), is_crowded=crowded)
    return ProcessExit(exit_code=code, is_crowded=crowded)


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time ones have no names
        return f"SIG{number}"
