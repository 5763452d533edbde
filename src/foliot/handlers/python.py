"""`python`: call a function of the worker's own code. `{"call": "package.module:function", "secrets": {…}}`.

`python_call.py` decides which functions jobs may name. An async function runs on the worker's event loop; a plain one runs in a child
process, where a deadline can end it. The job types of an app are functions too, called in the same way.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from foliot.handlers import python_call
from foliot.handlers.config_fields import Secret
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.python_call import InvalidCall, bind_arguments, decode_result, encode_error, find_allowed
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

_CALL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def _call(value: str) -> str:
    if not _CALL.fullmatch(value):
        raise refusal(
            "call", "This names no function.", "Write it as package.module:function, such as shop.jobs:sync."
        )
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
        self._functions: dict[str, tuple[Callable[..., Any], bool]] = {}  # and whether each is async
        self._pool = PythonPool(limits or ProcessLimits())

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> PythonHandler:
        return cls(deps.process_limits, deps.python_packages)

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self.call(assignment.config.get("call"), assignment)

    async def call(
        self, call: object, assignment: Assignment, config: Mapping[str, Any] | None = None
    ) -> HandlerResult:
        """Call the function. `config` is for functions that serve all jobs of a type."""
        try:
            function, is_async = self._functions.get(str(call)) or await self._find(call)
        except InvalidCall as error:
            return failed("call_invalid", str(error), permanent=True)
        if secrets := assignment.config.get("secrets"):
            assignment = replace(assignment, ctx=replace(assignment.ctx, secrets=secrets))
        if is_async:
            answer = await _call_on_loop(function, assignment, config)
        else:
            answer = await self._pool.call(str(call), assignment.input, assignment.ctx, config)
        if "output" in answer:
            return succeeded(answer["output"])
        if "retry_after" in answer:
            assignment.ctx.write("system", f"Asked to be called again: {answer['message']}")
        return decode_result(answer)

    async def close(self) -> None:
        await self._pool.close()

    async def _find(self, call: object) -> tuple[Callable[..., Any], bool]:
        """Import in a thread: it may take long, and other attempts need the event loop."""
        function = await asyncio.to_thread(find_allowed, call, self._packages)
        found = self._functions[str(call)] = function, python_call.is_async(function)
        return found


async def _call_on_loop(
    function: Callable[..., Any], assignment: Assignment, config: Mapping[str, Any] | None
) -> dict[str, Any]:
    ctx = assignment.ctx
    if ctx.is_stopping is never_stopping:
        task = asyncio.current_task()
        assert task is not None
        ctx = replace(ctx, is_stopping=lambda: task.cancelling() > 0)
    try:
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
    """Return handlers of the app's job types, which may not replace installed ones."""
    python = handlers.get("python")
    assert isinstance(python, PythonHandler)
    for each in app.handlers:
        if each.name in handlers:
            raise AppDefinitionError(
                f"The app {app.name} cannot register the job type {each.name}: there is one of that name.",
                hint="Give it another name.",
            )
    return {each.name: AppTypeHandler(each, python) for each in app.handlers}


def describe_app_types(app: Foliot) -> dict[str, HandlerDescription]:
    return {each.name: HandlerDescription(each.description, each.schema()) for each in app.handlers}
