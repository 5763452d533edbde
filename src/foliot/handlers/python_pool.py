"""The worker's side of its hands: start, ask, and end with everything they have started."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from concurrent.futures import Future
from secrets import token_hex
from typing import Any

from foliot.handlers.output_stream import PIECE, OutputStream
from foliot.handlers.supervised_process import ProcessExit, ProcessLimits, Program, SupervisedProcess
from foliot.sdk.context import Context

WORDS_WITHIN = 1.0  # seconds for the last words that were printed, once the answer has come


class PythonChildDied(Exception):
    """The process ended in the middle of a call."""


class PythonChild:
    def __init__(self, kept: SupervisedProcess) -> None:
        self._kept = kept
        self.is_spent = False

    @classmethod
    async def start(cls, bounds: ProcessLimits | None = None) -> PythonChild:
        command = (sys.executable, "-P", "-m", "foliot.handlers.python_child")
        return cls(
            await SupervisedProcess.start(Program(command, bounds=bounds or ProcessLimits()), stderr=PIPE)
        )

    @property
    def is_alive(self) -> bool:
        return self._kept.is_alive

    async def ask(self, question: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """The context gets what the function prints, writes, keeps and tells meanwhile."""
        mark = f"\0{token_hex(16)}\0"
        printed = asyncio.create_task(self._hear(ctx, mark.encode()))
        try:
            answer = await self._answer({**question, "mark": mark}, ctx)
            await asyncio.wait([printed], timeout=WORDS_WITHIN)
            # What is not heard by now would be taken for words of the next call.
            self.is_spent = not printed.done()
        finally:
            printed.cancel()
            await asyncio.wait([printed])
        if answer is None:
            raise PythonChildDied(_sentence(await self._kept.ended()))
        return answer

    async def _hear(self, ctx: Context, mark: bytes) -> None:
        """What it prints between the two marks. What comes before is of the last call, by a thread that it left behind."""
        held = b""
        while mark not in held:
            held = held[-len(mark) :]
            if not (piece := await self._printed()):
                return
            held += piece
        heard, held = OutputStream("stdout", ctx.write), held.partition(mark)[2]
        try:
            while mark not in held:
                begun = held.find(b"\0", max(0, len(held) - len(mark)))  # the mark, perhaps
                now, held = (held, b"") if begun < 0 else (held[:begun], held[begun:])
                await heard.take(now)
                if not (piece := await self._printed()):
                    break
                held += piece
            await heard.take(held.partition(mark)[0])
        finally:
            heard.end()

    async def _printed(self) -> bytes:
        said = self._kept.process.stderr
        assert said is not None
        return await said.read(PIECE)

    async def _answer(self, question: dict[str, Any], ctx: Context) -> dict[str, Any] | None:
        """None: it died meanwhile."""
        ask, answers = self._kept.process.stdin, self._kept.process.stdout
        assert ask is not None
        assert answers is not None
        sent = json.dumps(question).encode()
        try:
            ask.write(len(sent).to_bytes(4, "big") + sent)
            await ask.drain()
            while True:
                size = int.from_bytes(await answers.readexactly(4), "big")
                answer: dict[str, Any] = json.loads(await answers.readexactly(size))
                match answer:
                    case {"log": [stream, text]}:
                        ctx.write(stream, text)
                    case {"progress": [done, total, note]}:
                        ctx.tell(done, total, note)
                    case {"artifact": [name, media_type, size]}:
                        kept = ctx.keep(name, await answers.readexactly(size), media_type)
                        if isinstance(kept, Future):  # else what is not stored yet would heap up here
                            await asyncio.wrap_future(kept)
                    case _:
                        return answer
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def end(self, *, at_once: bool = False) -> None:
        """Politely, then by force, and with everything that was started from it."""
        await self._kept.end(at_once=at_once)


def _sentence(ended: ProcessExit) -> str:
    if ended.is_crowded:
        return "The process of this run was ended: it had started too many others."
    return f"The process of this run ended by {ended.how} before the function returned."
