"""`package.module:function` -> the function, and what to call it with. Standard library only: child processes load this."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

from foliot.handlers.context import Ctx


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


def arguments(function: Callable[..., Any], given: dict[str, Any], ctx: Ctx) -> tuple[Any, ...]:
    """(input, ctx), (input) or (), as many as the function takes; a single one named ctx gets that."""
    places = [each for each in inspect.signature(function).parameters.values() if each.kind in _BY_PLACE]
    if len(places) == 1 and places[0].name == "ctx":
        return (ctx,)
    takes_any = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in places)
    return (given, ctx)[: 2 if takes_any else len(places)]


_BY_PLACE = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
