"""`python`: call a function of the worker's own code. `{"call": "package.module:function"}`.

Any function that the worker can import may be named: whoever may write jobs of this type may run the worker's code. An async
function runs on the worker's loop; a plain one runs in a process of its own, where a deadline can end it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from foliot.handlers.calling import NotCallable, arguments, resolve
from foliot.handlers.configs import PythonConfig
from foliot.handlers.hands import Hand, HandDied
from foliot.handlers.registry import Assignment, Done, failed, succeeded


class PythonHandler:
    description: ClassVar = "Call a function of the worker's own code."
    config_shape: ClassVar = PythonConfig

    def __init__(self) -> None:
        self._known: dict[str, Callable[..., Any]] = {}
        self._idle: list[Hand] = []

    async def run(self, assignment: Assignment) -> Done:
        call = assignment.config.get("call")
        try:
            function = self._known.get(str(call)) or await self._find(call)
        except NotCallable as error:
            return failed("call_invalid", str(error), permanent=True)
        if inspect.iscoroutinefunction(function):
            given = arguments(function, dict(assignment.input), assignment.ctx)
            return succeeded(await function(*given))
        return await self._by_hand(assignment)

    async def close(self) -> None:
        for hand in self._idle:
            await hand.end(at_once=True)

    async def _find(self, call: object) -> Callable[..., Any]:
        """In a thread: importing may take long, and others are waiting for the loop."""
        found = await asyncio.to_thread(resolve, call)
        self._known[str(call)] = found
        return found

    async def _by_hand(self, assignment: Assignment) -> Done:
        hand = await self._hand()
        question = {
            "call": assignment.config["call"],
            "input": dict(assignment.input),
            "ctx": assignment.ctx.as_json(),
        }
        try:
            answer = await hand.ask(question, assignment.ctx.write)
        except HandDied as error:
            hand.kill()  # what it had started may live on
            return failed("process_died", str(error))
        except BaseException:
            await hand.end()
            raise
        self._idle.append(hand)
        if "error" in answer:
            return failed(answer["error"], answer["message"])
        return succeeded(answer["output"])

    async def _hand(self) -> Hand:
        while self._idle:
            hand = self._idle.pop()
            if hand.is_alive:
                return hand
        return await Hand.start()
