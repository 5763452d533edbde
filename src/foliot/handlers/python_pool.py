"""A pool of child processes that call plain Python functions, each with everything that the function starts.

A child serves one workspace only: memory, threads and files that a function leaves behind are never near the runs of another.

Why: docs/decisions/303-programs-run-under-a-supervisor.md
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from secrets import token_hex
from typing import Any

from foliot.clock import monotonic
from foliot.handlers.output_stream import PIECE, OutputStream
from foliot.handlers.supervised_process import (
    STOPS_WITHIN,
    ProcessExit,
    ProcessLimits,
    Program,
    SupervisedProcess,
)
from foliot.sdk.context import Context
from foliot.wire.amounts import read_usage

OUTPUT_WITHIN = 1.0  # seconds for the last printed output, once the answer has come
MOST_IDLE = 100  # children, of all workspaces together
IDLE_FOR = 60.0  # seconds after which an idle child is stopped, when another call ends
DIED = "process_died"


class PythonChildDied(Exception):
    """The process ended in the middle of a call."""


class PythonPool:
    """Reuse the idle child processes of a workspace; start one when all are busy."""

    def __init__(self, limits: ProcessLimits, packages: Sequence[str] = ()) -> None:
        self._limits = limits
        self._packages = list(packages)
        self._idle: OrderedDict[PythonChild, float] = OrderedDict()  # since when, the longest first

    async def call(
        self, call: str, given: Mapping[str, Any], ctx: Context, config: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Call the function in a child process of the context's workspace and return its encoded result."""
        request: dict[str, Any] = {"call": call, "input": dict(given), "ctx": ctx.as_json()}
        if config is not None:
            request["config"] = dict(config)
        return await self._ask(request, ctx)

    async def find(self, call: str, ctx: Context) -> dict[str, Any]:
        """Import the function in a child process, without calling it. The output tells whether it is async."""
        answer = await self._ask({"call": call, "only_find": True}, ctx)
        if (
            answer.get("error") == DIED
        ):  # perhaps by what an earlier run left behind; nothing was called, so it may be repeated
            answer = await self._ask({"call": call, "only_find": True}, ctx)
        return answer

    async def close(self) -> None:
        while self._idle:
            await self._idle.popitem()[0].stop(at_once=True)

    async def _ask(self, request: dict[str, Any], ctx: Context) -> dict[str, Any]:
        module = str(request["call"]).partition(":")[0]
        request |= {"packages": self._packages, "is_loaded": module in sys.modules}
        child = await self._take(ctx.workspace_id)
        try:
            answer = await child.call(request, ctx)
        except PythonChildDied as error:
            return {"error": DIED, "message": str(error)}
        except BaseException:
            await child.stop(at_once=True)
            raise
        if child.is_spent or answer.get("error") == MemoryError.__name__:  # the next run needs memory, too
            await child.stop(at_once=True)
        else:
            self._idle[child] = monotonic()
            await self._stop_surplus()
        return answer

    async def _take(self, workspace_id: str) -> PythonChild:
        for child in reversed([each for each in self._idle if each.workspace_id == workspace_id]):
            del self._idle[child]
            if child.is_alive:
                return child
        return await PythonChild.start(workspace_id, self._limits)

    async def _stop_surplus(self) -> None:
        while self._idle:
            child, since = next(iter(self._idle.items()))
            if len(self._idle) <= MOST_IDLE and monotonic() - since < IDLE_FOR:
                return
            del self._idle[child]
            await child.stop(at_once=True)


class PythonChild:
    """One child process. It runs `python_child.py`."""

    def __init__(self, supervised: SupervisedProcess, workspace_id: str) -> None:
        self.workspace_id = workspace_id
        self.is_spent = False  # its later output would be taken for that of the next call
        self._supervised = supervised

    @classmethod
    async def start(cls, workspace_id: str, limits: ProcessLimits | None = None) -> PythonChild:
        command = (sys.executable, "-P", "-m", "foliot.handlers.python_child")
        program = Program(command, limits=limits or ProcessLimits())
        return cls(await SupervisedProcess.start(program, stderr=PIPE), workspace_id)

    @property
    def is_alive(self) -> bool:
        return self._supervised.is_alive

    async def call(self, request: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Send the request and return the answer. The context gets the function's output, artifacts and progress meanwhile.

        A cancelled call stops the function and still takes what its `finally` writes.
        """
        token = token_hex(16)
        printed = asyncio.create_task(self._read_output(ctx, f"\0{token}\0".encode()))
        exchanged = asyncio.create_task(self._exchange({**request, "token": token}, token, ctx))
        try:
            answer = await asyncio.shield(exchanged)
            await asyncio.wait([printed], timeout=OUTPUT_WITHIN)
        except asyncio.CancelledError:
            self._supervised.terminate()
            await asyncio.wait([exchanged, printed], timeout=STOPS_WITHIN)
            raise
        finally:
            is_silent = printed.done()
            for task in (exchanged, printed):
                task.cancel()
            await asyncio.wait([exchanged, printed])
        if answer is None:
            raise PythonChildDied(_exit_message(await self._supervised.wait()))
        self.is_spent = not is_silent or answer.pop("has_left_work", True)
        return answer

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop the process and everything it started: by SIGTERM, then by force."""
        await self._supervised.stop(at_once=at_once)

    async def _read_output(self, ctx: Context, mark: bytes) -> None:
        """Write the output between the two marks."""
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

    async def _exchange(self, request: dict[str, Any], token: str, ctx: Context) -> dict[str, Any] | None:
        """Return the answer, or None when the process died. Messages of another call are dropped."""
        requests, answers = self._supervised.process.stdin, self._supervised.process.stdout
        assert requests is not None
        assert answers is not None
        sent = json.dumps(request).encode()
        try:
            requests.write(len(sent).to_bytes(4, "big") + sent)
            await requests.drain()
            while True:
                size = int.from_bytes(await answers.readexactly(4), "big")
                message: dict[str, Any] = json.loads(await answers.readexactly(size))
                is_ours = message.get("token") == token
                match message:
                    case {"artifact": [name, media_type, size]}:
                        content = await answers.readexactly(size)
                        upload = ctx.keep(name, content, media_type) if is_ours else None
                        if isinstance(upload, Future):  # else artifacts would pile up here
                            await asyncio.wrap_future(upload)
                    case _ if not is_ours:
                        pass
                    case {"log": [stream, text]}:
                        ctx.write(stream, text)
                    case {"progress": [done, total, note]}:
                        ctx.tell(done, total, note)
                    case {"usage": dict(usage)}:
                        ctx.spend(read_usage(usage))
                    case {"answer": dict(answer)}:
                        return answer
                    case _:
                        raise AssertionError(f"the child sent {sorted(message)}")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


def _exit_message(exit_: ProcessExit) -> str:
    if exit_.is_crowded:
        return "The process of this run was ended: it had started too many others."
    return f"The process of this run ended by {exit_.how} before the function returned."
