"""The worker's side of its hands: start, ask, and end with everything they have started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

from foliot.sdk.context import Write, to_nowhere

STOPS_WITHIN = 1.0  # seconds between the polite signal and the other one


class HandDied(Exception):
    """The process ended in the middle of a call."""


class Hand:
    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Hand:
        """In a session of its own: a Ctrl-C in the terminal is for the server, and its group can be ended as one."""
        command = (sys.executable, "-P", "-m", "foliot.handlers.hand")
        return cls(
            await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        )

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, question: dict[str, Any], write: Write = to_nowhere) -> dict[str, Any]:
        """`write` gets the lines that the function writes meanwhile."""
        ask, answers = self._process.stdin, self._process.stdout
        assert ask is not None
        assert answers is not None
        sent = json.dumps(question).encode()
        try:
            ask.write(len(sent).to_bytes(4, "big") + sent)
            await ask.drain()
            while True:
                size = int.from_bytes(await answers.readexactly(4), "big")
                answer: dict[str, Any] = json.loads(await answers.readexactly(size))
                if "log" not in answer:
                    return answer
                write(*answer["log"])
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await self._gone()
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            raise HandDied(f"The process of this run ended by {how} before the function returned.") from None

    async def end(self, *, at_once: bool = False) -> None:
        """Politely, then by force, and with everything that was started from it."""
        family = descendants(self._process.pid)
        gone = asyncio.create_task(self._gone())
        try:
            if self.is_alive and not at_once:
                self._process.terminate()
                # Not asyncio.timeout: in a task that is being cancelled, Python before 3.11.4 lets its own cancellation out.
                await asyncio.wait([gone], timeout=STOPS_WITHIN)
        finally:
            self.kill(family)
        await gone

    async def _gone(self) -> int:
        """Its exit code, once it has one. The pipes would be closed in a later turn of the loop, which there may not be."""
        code = await self._process.wait()
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio has no other door to it
        return code

    def kill(self, family: list[int] | None = None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in family or ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Those that made a session of their own included, as long as their parents live."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, new = [], [root]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found += new
    return found
