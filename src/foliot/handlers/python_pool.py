"""A pool of child processes that call plain Python functions, each with everything that the function starts.

Why: docs/decisions/303-programs-run-under-a-supervisor.md
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from concurrent.futures import Future
from secrets import token_hex
from typing import Any

from foliot.handlers.output_stream import PIECE, OutputStream
from foliot.handlers.supervised_process import ProcessExit, ProcessLimits, Program, SupervisedProcess
from foliot.sdk.context import Context

OUTPUT_WITHIN = 1.0  # seconds for the last printed output, once the answer has come


class PythonChildDied(Exception):
    """The process ended in the middle of a call."""


class PythonPool:
    """Reuse idle child processes; start one when all are busy."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._idle: list[PythonChild] = []

    async def call(
        self, call: str, given: Mapping[str, Any], ctx: Context, config: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Call the function in a child process and return its encoded result."""
        child = await self._take()
        request = {"call": call, "input": dict(given), "ctx": ctx.as_json()}
        if config is not None:
            request["config"] = dict(config)
        try:
            answer = await child.call(request, ctx)
        except PythonChildDied as error:
            return {"error": "process_died", "message": str(error)}
        except BaseException:
            await child.stop()
            raise
        if child.is_spent:
            await child.stop(at_once=True)
        else:
            self._idle.append(child)
        return answer

    async def close(self) -> None:
        for child in self._idle:
            await child.stop(at_once=True)

    async def _take(self) -> PythonChild:
        while self._idle:
            child = self._idle.pop()
            if child.is_alive:
                return child
        return await PythonChild.start(self._limits)


class PythonChild:
    """One child process. It runs `python_child.py`."""

    def __init__(self, supervised: SupervisedProcess) -> None:
        self._supervised = supervised
        self.is_spent = False  # its later output would be taken for that of the next call

    @classmethod
    async def start(cls, limits: ProcessLimits | None = None) -> PythonChild:
        command = (sys.executable, "-P", "-m", "foliot.handlers.python_child")
        program = Program(command, limits=limits or ProcessLimits())
        return cls(await SupervisedProcess.start(program, stderr=PIPE))

    @property
    def is_alive(self) -> bool:
        return self._supervised.is_alive

    async def call(self, request: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Send the request and return the answer. The context gets the function's output, artifacts and progress meanwhile."""
        mark = f"\0{token_hex(16)}\0"
        printed = asyncio.create_task(self._read_output(ctx, mark.encode()))
        try:
            answer = await self._exchange({**request, "mark": mark}, ctx)
            await asyncio.wait([printed], timeout=OUTPUT_WITHIN)
            # Later output would be taken for that of the next call.
            self.is_spent = not printed.done()
        finally:
            printed.cancel()
            await asyncio.wait([printed])
        if answer is None:
            raise PythonChildDied(_exit_message(await self._supervised.wait()))
        return answer

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop the process and everything it started: by SIGTERM, then by force."""
        await self._supervised.stop(at_once=at_once)

    async def _read_output(self, ctx: Context, mark: bytes) -> None:
        """Write the output between the two marks. Earlier output is of the last call, by a thread that it left behind."""
        held = b""
        while mark not in held:
            held = held[-len(mark) :]
            if not (piece := await self._read()):
                return
            held += piece
        stream, held = OutputStream("stdout", ctx.write), held.partition(mark)[2]
        try:
            while mark not in held:
                begun = held.find(b"\0", max(0, len(held) - len(mark)))  # the mark, perhaps
                now, held = (held, b"") if begun < 0 else (held[:begun], held[begun:])
                await stream.add(now)
                if not (piece := await self._read()):
                    break
                held += piece
            await stream.add(held.partition(mark)[0])
        finally:
            stream.end()

    async def _read(self) -> bytes:
        stderr = self._supervised.process.stderr
        assert stderr is not None
        return await stderr.read(PIECE)

    async def _exchange(self, request: dict[str, Any], ctx: Context) -> dict[str, Any] | None:
        """Return the answer, or None when the process died."""
        requests, answers = self._supervised.process.stdin, self._supervised.process.stdout
        assert requests is not None
        assert answers is not None
        sent = json.dumps(request).encode()
        try:
            requests.write(len(sent).to_bytes(4, "big") + sent)
            await requests.drain()
            while True:
                size = int.from_bytes(await answers.readexactly(4), "big")
                answer: dict[str, Any] = json.loads(await answers.readexactly(size))
                match answer:
                    case {"log": [stream, text]}:
                        ctx.write(stream, text)
                    case {"progress": [done, total, note]}:
                        ctx.tell(done, total, note)
                    case {"artifact": [name, media_type, size]}:
                        upload = ctx.keep(name, await answers.readexactly(size), media_type)
                        if isinstance(upload, Future):  # else artifacts would pile up here
                            await asyncio.wrap_future(upload)
                    case _:
                        return answer
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


def _exit_message(exit_: ProcessExit) -> str:
    if exit_.is_crowded:
        return "The process of this run was ended: it had started too many others."
    return f"The process of this run ended by {exit_.how} before the function returned."
