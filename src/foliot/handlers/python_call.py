"""`package.module:function` -> the function, and what to call it with. No heavy imports: child processes load this."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, partial, reduce
from importlib import import_module
from typing import Any

from foliot.sdk.app.job import Job
from foliot.sdk.app.job_type import JobType
from foliot.sdk.context import Context
from foliot.sdk.outcomes import Fail


class NotCallable(Exception):
    """`call` does not name a function."""


def resolve(call: object) -> Callable[..., Any]:
    if not isinstance(call, str) or call.count(":") != 1 or not all(call.split(":")):
        raise NotCallable(f"config.call is {call!r}; it must look like package.module:function")
    module, _, path = call.partition(":")
    found = reduce(getattr, path.split("."), import_module(module))
    if not callable(found):
        raise NotCallable(f"{call} is not a function")
    return found


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function.function if isinstance(function, Job | JobType) else function)


def prepared(
    function: Callable[..., Any], given: dict[str, Any], ctx: Context, config: Mapping[str, Any] | None = None
) -> Callable[[], Any]:
    """Ready to be called. A decorated function gets the input by the names of its parameters; any other gets
    (input, ctx), (input) or (), as many as it takes, and a single one named ctx gets that.
    """
    if isinstance(function, Job):
        if problem := function.inputs.misfit(given):
            raise Fail(f"{function.name} {problem}", code="input_invalid")
        return function.inputs.bound(function.function, given, ctx)
    if isinstance(function, JobType):
        try:
            return function.bound(config or {}, given, ctx)
        except ValueError as error:
            raise Fail(f"The config does not fit {function.name}: {error}", code="config_invalid") from error
    wanted = _wanted(function)
    return partial(function, *((ctx,) if wanted == ("ctx",) else (given, ctx)[: len(wanted)]))


@lru_cache(maxsize=1_000)
def _wanted(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what it takes by place; two where it takes any number."""
    places = [each for each in inspect.signature(function).parameters.values() if each.kind in _BY_PLACE]
    takes_any = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in places)
    return ("input", "ctx") if takes_any else tuple(each.name for each in places)


_BY_PLACE = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
