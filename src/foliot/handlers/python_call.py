"""Bind the arguments of a function and encode its result. `python_names.py` finds the function.

No heavy imports: child processes load this.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foliot.handlers.python_names import InvalidCall
from foliot.sdk.app.job import Job, JobType
from foliot.sdk.context import Context
from foliot.sdk.outcomes import Cancel, Fail, Retry, Skip, TimeOut


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function.function if isinstance(function, Job | JobType) else function)


def bind_arguments(
    function: Callable[..., Any], given: dict[str, Any], ctx: Context, config: Mapping[str, Any] | None = None
) -> Callable[[], Any]:
    """Return the call with its arguments. A decorated function gets the input by the names of its parameters; any other gets
    (input, ctx), (input) or (), as many as it takes, and a single parameter named ctx gets the context.
    """
    if isinstance(function, Job):
        if problem := function.inputs.misfit(given):
            raise Fail(f"{function.name} {problem}", code="input_invalid")
        try:
            return function.inputs.bound(function.function, given, ctx)
        except ValueError as error:
            raise Fail(f"The input does not fit {function.name}: {error}", code="input_invalid") from error
    if isinstance(function, JobType):
        try:
            return function.bound(config or {}, given, ctx)
        except ValueError as error:
            raise Fail(f"The config does not fit {function.name}: {error}", code="config_invalid") from error
    parameters = _parameters(function)
    return partial(function, *((ctx,) if parameters == ("ctx",) else (given, ctx)[: len(parameters)]))


@lru_cache(maxsize=1_000)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the positional parameters; two where the function takes any number."""
    found = [each for each in inspect.signature(function).parameters.values() if each.kind in _POSITIONAL]
    takes_any = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in found)
    return ("input", "ctx") if takes_any else tuple(each.name for each in found)


_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)

MOST_FRAMES = 50
_OUR_FILES = frozenset(
    {__file__, str(Path(__file__).with_name("python_child.py")), str(Path(__file__).with_name("python.py"))}
)

if TYPE_CHECKING:
    from foliot.handlers.registry import HandlerResult


def encode_error(error: BaseException) -> dict[str, Any]:
    """Encode the exception of a function as JSON that a child process can send."""
    message = str(error)
    match error:
        case Retry(after=timedelta() as after):
            return {"retry_after": after.total_seconds(), "message": message}
        case Retry():
            return {"error": "retry", "message": message}
        case InvalidCall():
            return {"error": "call_invalid", "message": message, "permanent": True}
        case Skip():
            return {"skip": message}
        case Fail(permanent=permanent, code=code):
            return {"error": code, "message": message, "permanent": permanent}
        case Cancel():
            return {"cancelled": message}
        case TimeOut():
            return {"timed_out": message}
        case _:
            failure = {"error": type(error).__name__, "message": message or repr(error)}
            return failure | {"traceback": _traceback_of(error)}


def _traceback_of(error: BaseException) -> str:
    """Format the traceback from the function on: the frames above it are ours."""
    shown = traceback.TracebackException.from_exception(error, limit=-MOST_FRAMES)
    shown.stack[:] = [frame for frame in shown.stack if frame.filename not in _OUR_FILES]
    return "".join(shown.format())


def decode_result(answer: dict[str, Any]) -> HandlerResult:
    from foliot.domain import outcomes
    from foliot.domain.run import RunError
    from foliot.domain.schedule import SkipReason
    from foliot.handlers.registry import HandlerResult, succeeded

    match answer:
        case {"retry_after": seconds}:
            return HandlerResult(outcomes.AskedRetry(timedelta(seconds=seconds)))
        case {"skip": reason}:
            return HandlerResult(outcomes.AskedSkip(SkipReason.OPERATOR, reason))
        case {"cancelled": _}:
            return HandlerResult(outcomes.Cancelled())
        case {"timed_out": _}:
            return HandlerResult(outcomes.TimedOut())
        case {"error": code, "message": message}:
            found = RunError(code, message, answer.get("traceback"))
            return HandlerResult(outcomes.Failed(found, answer.get("permanent", False)))
        case _:
            return succeeded(answer["output"])
