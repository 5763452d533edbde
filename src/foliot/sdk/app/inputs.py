"""Check an input against the parameters of a function, and pass the context if it takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

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

    def bound(
        self, function: Callable[..., Any], given: Mapping[str, Any], ctx: Context
    ) -> Callable[[], Any]:
        values = dict(given) if self.ctx is None else {**given, self.ctx: ctx}
        by_place = []
        for each in self.signature.parameters.values():
            if each.kind is not inspect.Parameter.POSITIONAL_ONLY or each.name not in values:
                break
            by_place.append(values.pop(each.name))
        return partial(function, *by_place, **values)


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_context(parameter: inspect.Parameter) -> bool:
    note = parameter.annotation
    return (
        parameter.name == "ctx" or note is Context or (isinstance(note, str) and note in _CONTEXT_ANNOTATIONS)
    )
