"""Check an input against the parameters of a function, and pass the context if it takes one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, get_type_hints

from foliot.sdk.context import Context

_CONTEXT_ANNOTATIONS = frozenset({"Context", "foliot.Context"})  # annotations as strings


@dataclass(frozen=True, slots=True)
class FunctionInputs:
    """`ctx` is the name of the parameter for the context, or None."""

    signature: inspect.Signature
    names: tuple[str, ...]
    required: tuple[str, ...]
    takes_any: bool
    ctx: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> FunctionInputs:
        signature = inspect.signature(function)
        places = [each for each in signature.parameters.values() if each.kind not in _VARIADIC]
        ctx = next((each.name for each in places if _is_context(each)), None)
        named = [each for each in places if each.name != ctx]
        return cls(
            signature,
            tuple(each.name for each in named),
            tuple(each.name for each in named if each.default is inspect.Parameter.empty),
            any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values()),
            ctx,
        )

    def misfit(self, given: Iterable[str], *, whole: bool = True) -> str | None:
        """Return the problem, to follow the function's name in a message. With `whole`, required parameters must be given."""
        given = list(given)
        unknown = [] if self.takes_any else [each for each in given if each not in self.names]
        if unknown:
            near = get_close_matches(unknown[0], self.names, 1)
            known = f"did you mean {near[0]}?" if near else f"it takes {', '.join(self.names) or 'nothing'}."
            return f"has no parameter {', '.join(unknown)}: {known}"
        missing = [each for each in self.required if each not in given] if whole else []
        return f"needs {', '.join(missing)}, which the input does not have." if missing else None

    def read(self, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the input as the annotations of the function want it: a `date` is read from text. Raise ValueError where it does not fit.

        Parameters without an annotation, and annotations that cannot be evaluated, take any value.
        """
        hints = _hints_of(function)
        return {
            name: _read(name, value, hints[name]) if name in hints and name in self.names else value
            for name, value in given.items()
        }

    def bound(
        self, function: Callable[..., Any], given: Mapping[str, Any], ctx: Context
    ) -> Callable[[], Any]:
        values = self.read(function, given)
        if self.ctx is not None:
            values[self.ctx] = ctx
        by_place = []
        for each in self.signature.parameters.values():
            if each.kind is not inspect.Parameter.POSITIONAL_ONLY or each.name not in values:
                break
            by_place.append(values.pop(each.name))
        return partial(function, *by_place, **values)


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # names that exist for type checkers alone
        return {}


def _read(name: str, value: Any, hint: Any) -> Any:
    if hint is Any or hint is object or type(value) is hint:
        return value  # most inputs; no need for pydantic, which takes a child process long to import
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(hint).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, (name, *first["loc"])))
        raise ValueError(f"{where}: {first['msg']}, not {json.dumps(value)[:100]}") from None
    except PydanticUserError:
        return value  # an annotation that says nothing about JSON


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_context(parameter: inspect.Parameter) -> bool:
    note = parameter.annotation
    return (
        parameter.name == "ctx" or note is Context or (isinstance(note, str) and note in _CONTEXT_ANNOTATIONS)
    )
