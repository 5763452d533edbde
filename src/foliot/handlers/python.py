"""`python`: call a function of the worker's own code. `{"call": "package.module:function", "secrets": {…}}`.

Which functions may be named is told in `python_call.py`. An async one runs on the worker's loop; a plain one runs in a process of
its own, where a deadline can end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from foliot.handlers import python_call
from foliot.handlers.config_fields import PythonConfig
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.python_call import InvalidCall, bind_arguments, decode_result, encode_error, find_allowed
from foliot.handlers.python_pool import PythonChild, PythonChildDied
from foliot.handlers.registry import Assignment, Handler, HandlerDescription, HandlerResult, failed, succeeded
from foliot.handlers.supervised_process import ProcessLimits
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.errors import Misdefined
from foliot.sdk.app.job_type import JobType
from foliot.sdk.context import never


class PythonHandler:
    description: ClassVar = "Call a function of the worker's own code."
    config_shape: ClassVar = PythonConfig

    def __init__(self, bounds: ProcessLimits | None = None, packages: Sequence[str] = ()) -> None:
        self._bounds = bounds
        self._packages = packages
        self._known: dict[str, tuple[Callable[..., Any], bool]] = {}  # and whether it is async
        self._idle: list[PythonChild] = []

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> PythonHandler:
        return cls(deps.process_limits, deps.python_packages)

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self.call(assignment.config.get("call"), assignment)

    async def call(
        self, call: object, assignment: Assignment, config: Mapping[str, Any] | None = None
    ) -> HandlerResult:
        """`config` is for functions that do all jobs of a type."""
        try:
            function, is_async = self._known.get(str(call)) or await self._find(call)
        except InvalidCall as error:
            return failed("call_invalid", str(error), permanent=True)
        if secrets := assignment.config.get("secrets"):
            assignment = replace(assignment, ctx=replace(assignment.ctx, secrets=secrets))
        if is_async:
            answer = await _on_the_loop(function, assignment, config)
        else:
            answer = await self._by_hand(str(call), assignment, config)
        if "output" in answer:
            return succeeded(answer["output"])
        if "retry_after" in answer:
            assignment.ctx.write("system", f"Asked to be called again: {answer['message']}")
        return decode_result(answer)

    async def close(self) -> None:
        for hand in self._idle:
            await hand.end(at_once=True)

    async def _find(self, call: object) -> tuple[Callable[..., Any], bool]:
        """In a thread: importing may take long, and others are waiting for the loop."""
        function = await asyncio.to_thread(find_allowed, call, self._packages)
        found = self._known[str(call)] = function, python_call.is_async(function)
        return found

    async def _by_hand(
        self, call: str, assignment: Assignment, config: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        hand = await self._hand()
        question = {"call": call, "input": dict(assignment.input), "ctx": assignment.ctx.as_json()}
        if config is not None:
            question["config"] = dict(config)
        try:
            answer = await hand.ask(question, assignment.ctx)
        except PythonChildDied as error:
            return {"error": "process_died", "message": str(error)}
        except BaseException:
            await hand.end()
            raise
        if hand.is_spent:
            await hand.end(at_once=True)
        else:
            self._idle.append(hand)
        return answer

    async def _hand(self) -> PythonChild:
        while self._idle:
            hand = self._idle.pop()
            if hand.is_alive:
                return hand
        return await PythonChild.start(self._bounds)


async def _on_the_loop(
    function: Callable[..., Any], assignment: Assignment, config: Mapping[str, Any] | None
) -> dict[str, Any]:
    ctx = assignment.ctx
    if ctx.is_stopping is never:
        task = asyncio.current_task()
        assert task is not None
        ctx = replace(ctx, is_stopping=lambda: task.cancelling() > 0)
    try:
        return {"output": await bind_arguments(function, dict(assignment.input), ctx, config)()}
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it raises is the attempt's failure, not ours
        return encode_error(error)


class AppTypeHandler:
    """Does the jobs of one type. The processes belong to the python handler, which outlives it."""

    def __init__(self, job_type: JobType[..., object], python: PythonHandler) -> None:
        self._type = job_type
        self._python = python

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self._python.call(self._type.call, assignment, assignment.config)

    async def close(self) -> None:
        pass


def app_handlers(app: Foliot, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Those of the app beside those that are installed, which it may not replace."""
    python = handlers.get("python")
    assert isinstance(python, PythonHandler)
    for each in app.handlers:
        if each.name in handlers:
            raise Misdefined(
                f"The app {app.name} cannot register the job type {each.name}: there is one of that name.",
                hint="Give it another name.",
            )
    return {each.name: AppTypeHandler(each, python) for each in app.handlers}


def describe_app_types(app: Foliot) -> dict[str, HandlerDescription]:
    return {each.name: HandlerDescription(each.description, each.schema()) for each in app.handlers}
