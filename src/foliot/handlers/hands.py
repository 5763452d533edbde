"""The worker's side of its hands: start, ask, and end with everything they have started."""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import Future
from typing import Any

from foliot.handlers.kept import Bounds, Ended, Kept, Program
from foliot.sdk.context import Context


class HandDied(Exception):
    """The process ended in the middle of a call."""


class Hand:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    @classmethod
    async def start(cls, bounds: Bounds | None = None) -> Hand:
        command = (sys.executable, "-P", "-m", "foliot.handlers.hand")
        return cls(await Kept.start(Program(command, bounds=bounds or Bounds())))

    @property
    def is_alive(self) -> bool:
        return self._kept.is_alive

    async def ask(self, question: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """The context gets what the function writes, keeps and tells meanwhile."""
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
            ended = await self._kept.ended()
            raise HandDied(_sentence(ended)) from None

    async def end(self, *, at_once: bool = False) -> None:
        """Politely, then by force, and with everything that was started from it."""
        await self._kept.end(at_once=at_once)


def _sentence(ended: Ended) -> str:
    if ended.is_crowded:
        return "The process of this run was ended: it had started too many others."
    return f"The process of this run ended by {ended.how} before the function returned."
