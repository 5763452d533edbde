"""Find the function that `package.module:function` names, bind its arguments, and encode its result.

No heavy imports: child processes load this.

Why: docs/decisions/305-python-jobs-call-the-operators-code.md
"""

from __future__ import annotations

import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache, lru_cache, partial, reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import foliot
from foliot.sdk.app.job import Job, JobType
from foliot.sdk.context import Context
from foliot.sdk.outcomes import Fail, Retry, Skip


class InvalidCall(Exception):
    """`call` does not name a function that jobs may call."""


def resolve(call: object) -> Callable[..., Any]:
    if not isinstance(call, str) or call.count(":") != 1 or not all(call.split(":")):
        raise InvalidCall(f"config.call is {call!r}; it must look like package.module:function")
    module, _, path = call.partition(":")
    found = reduce(getattr, path.split("."), import_module(module))
    if not callable(found):
        raise InvalidCall(f"{call} is not a function")
    return found


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
        return function.inputs.bound(function.function, given, ctx)
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
        case Skip():
            return {"skip": message}
        case Fail(permanent=permanent, code=code):
            return {"error": code, "message": message, "permanent": permanent}
        case _:
            return {"error": type(error).__name__, "message": message or repr(error)}


def decode_result(answer: dict[str, Any]) -> HandlerResult:
    from foliot.domain.outcomes import AskedRetry, AskedSkip
    from foliot.domain.schedule import SkipReason
    from foliot.handlers.registry import HandlerResult, failed, succeeded

    match answer:
        case {"retry_after": seconds}:
            return HandlerResult(AskedRetry(timedelta(seconds=seconds)))
        case {"skip": reason}:
            return HandlerResult(AskedSkip(SkipReason.OPERATOR, reason))
        case {"error": code, "message": message}:
            return failed(code, message, permanent=answer.get("permanent", False))
        case _:
            return succeeded(answer["output"])


FIRST_TRY = "builtins:print"  # many first jobs call it; it starts nothing and reads nothing


def find_allowed(call: object, packages: Sequence[str] = ()) -> Callable[..., Any]:
    """Find a function that the operator wrote or allowed, or raise InvalidCall.

    The standard library has functions that start any program, and the author of a job often does not own the worker, which serves every
    workspace. So a name leads to a decorated function, to one whose code lies outside the folders of Python and Foliot, or to one in an
    installed package that the operator has named. No module of the standard library is imported: that alone may have effects.
    """
    if call == FIRST_TRY:
        return print
    top = str(call).partition(":")[0].partition(".")[0]
    if top in sys.stdlib_module_names or top == foliot.__name__:
        raise _not_allowed(call)
    found = resolve(call)
    if not isinstance(found, Job | JobType) and not _is_allowed(found, packages):
        raise _not_allowed(call)
    return found


def _is_allowed(found: Any, packages: Sequence[str]) -> bool:
    """Decide by the file of the code: a module also exposes functions that it imported."""
    while isinstance(found, partial):
        found = found.func
    found = inspect.unwrap(found)
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        found = type(found)
    try:
        path = Path(inspect.getfile(found))
    except TypeError:  # it is written in C
        return False
    if not path.is_absolute():  # frozen, or made by exec
        return False
    resolved = path.resolve()
    if not any(resolved.is_relative_to(folder) for folder in _closed_folders()):
        return True
    name = str(getattr(found, "__module__", ""))
    return any(name == each or name.startswith(f"{each}.") for each in packages)


@cache
def _closed_folders() -> tuple[Path, ...]:
    """Return the folders of the standard library, of installed packages, and of Foliot."""
    named = [sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib", "platlib")]
    named += [*site.getsitepackages(), site.getusersitepackages()]
    return (*(Path(each).resolve() for each in named), Path(foliot.__file__).resolve().parent)


def _not_allowed(call: object) -> InvalidCall:
    return InvalidCall(
        f"{call} is no function that jobs may name. Decorate it, keep it in a folder of your own, or let its package in by "
        "FOLIOT_PYTHON_PACKAGES, on every worker"
    )
