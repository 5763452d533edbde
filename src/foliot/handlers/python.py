"""`python`: call a function of the worker's own code. `{"call": "package.module:function", "secrets": {…}}`.

`python_names.py` decides which functions jobs may name. An async function runs on the worker's event loop; a plain one runs in a child
process, where a deadline can end it, and is imported only there. The job types of an app are functions too, called in the same way.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from foliot.handlers import python_call
from foliot.handlers.action import ActionHandler
from foliot.handlers.config_fields import Secret
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.printed_lines import printing_to
from foliot.handlers.python_call import bind_arguments, decode_result, encode_error
from foliot.handlers.python_names import FIRST_TRY, InvalidCall, find_allowed, judge, parse_call
from foliot.handlers.python_pool import PythonPool
from foliot.handlers.registry import (
    Assignment,
    Handler,
    HandlerDescription,
    HandlerResult,
    failed,
    succeeded,
)
from foliot.handlers.supervised_process import ProcessLimits
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.job import JobType
from foliot.sdk.app.options import AppDefinitionError
from foliot.sdk.context import never_stopping
from foliot.wire.shape import Shape, refusal


def _call(value: str) -> str:
    try:
        parse_call(value)
    except InvalidCall:
        hint = "Write it as package.module:function, such as shop.jobs:sync."
        raise refusal("call", "This names no function.", hint) from None
    return value


class PythonConfig(Shape):
    call: Annotated[str, AfterValidator(_call)] = Field(max_length=500, examples=["shop.jobs:sync"])
    secrets: dict[str, Secret] = Field(
        default={}, max_length=100, description="What the function finds in ctx.secrets, by these names."
    )


class PythonHandler:
    description: ClassVar = "Call a function of the worker's own code."
    config_shape: ClassVar = PythonConfig

    def __init__(self, limits: ProcessLimits | None = None, packages: Sequence[str] = ()) -> None:
        self._packages = packages
        self._functions: dict[
            str, Callable[..., Any] | None
        ] = {}  # by call; None is one for the child processes
        self._pool = PythonPool(limits or ProcessLimits(), packages)

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> PythonHandler:
        return cls(deps.process_limits, deps.python_packages)

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self.call(assignment.config.get("call"), assignment)

    async def call(
        self, call: object, assignment: Assignment, config: Mapping[str, Any] | None = None
    ) -> HandlerResult:
        """Call the function. `config` is for functions that serve all jobs of a type."""
        name = str(call)
        if name not in self._functions and (refused := await self._find(call, assignment)) is not None:
            return refused
        function = self._functions[name]
        if secrets := assignment.config.get("secrets"):
            assignment = replace(assignment, ctx=replace(assignment.ctx, secrets=secrets))
        if function is not None:
            answer = await _call_on_loop(function, assignment, config)
        else:
            answer = await self._pool.call(name, assignment.input, assignment.ctx, config)
        if "output" in answer:
            return succeeded(answer["output"])
        for ended in ("cancelled", "timed_out"):
            if ended in answer:
                assignment.ctx.write("system", f"Ended as {ended.replace('_', ' ')}: {answer[ended]}")
        if "retry_after" in answer:
            assignment.ctx.write("system", f"Asked to be called again: {answer['message']}")
        return decode_result(answer)

    async def close(self) -> None:
        await self._pool.close()

    async def _find(self, call: object, assignment: Assignment) -> HandlerResult | None:
        """Judge the function, and keep it where it is async. Return the failure of one that may not be named.

        The worker itself imports async functions only, and only after a child process has done so within the deadline.
        """
        name = str(call)
        try:
            function: Callable[..., Any] | None = None
            is_loaded = parse_call(call)[0] in sys.modules
            if call != FIRST_TRY:
                judged = await asyncio.to_thread(judge, call, self._packages, is_loaded=is_loaded)
                is_async = is_loaded or judged.is_async
                if is_async and not is_loaded:
                    answer = await self._pool.find(name, assignment.ctx)
                    if "error" in answer:
                        return decode_result(answer)
                    is_async = answer["output"]
                if is_async:  # in a thread: other attempts need the event loop
                    found = await asyncio.to_thread(find_allowed, call, self._packages, is_loaded=is_loaded)
                    function = found if python_call.is_async(found) else None
        except InvalidCall as error:
            return failed("call_invalid", str(error), permanent=True)
        self._functions[name] = function
        return None


async def _call_on_loop(
    function: Callable[..., Any], assignment: Assignment, config: Mapping[str, Any] | None
) -> dict[str, Any]:
    ctx = assignment.ctx
    if ctx.is_stopping is never_stopping:
        task = asyncio.current_task()
        assert task is not None
        ctx = replace(ctx, is_stopping=lambda: task.cancelling() > 0)
    try:
        with printing_to(ctx.write):
            return {"output": await bind_arguments(function, dict(assignment.input), ctx, config)()}
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it raises is the attempt's failure, not the worker's
        return encode_error(error)


class AppTypeHandler:
    """Handle the jobs of one app type. The child processes belong to the python handler, which outlives it."""

    def __init__(self, job_type: JobType[..., object], python: PythonHandler) -> None:
        self._type = job_type
        self._python = python

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self._python.call(self._type.call, assignment, assignment.config)

    async def close(self) -> None:
        pass


def app_handlers(app: Foliot, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Return handlers of the app's job types, which may not replace installed ones, and the handler of actions, which are these types."""
    python = handlers.get("python")
    assert isinstance(python, PythonHandler)
    for each in app.handlers:
        if each.name in handlers:
            raise AppDefinitionError(
                f"The app {app.name} cannot register the job type {each.name}: there is one of that name.",
                hint="Give it another name.",
            )
    types: dict[str, Handler] = {each.name: AppTypeHandler(each, python) for each in app.handlers}
    return types | {"action": ActionHandler(types)}


def describe_app_types(app: Foliot) -> dict[str, HandlerDescription]:
    return {each.name: HandlerDescription(each.description, each.schema()) for each in app.handlers}
