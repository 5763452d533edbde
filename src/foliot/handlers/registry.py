"""The handlers there are. Ours and those of other packages come in by the same door, the entry points `foliot.handlers`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol

from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.handlers.dependencies import HandlerDeps
from foliot.sdk.context import Context
from foliot.wire.shape import Shape

log = logging.getLogger(__name__)
GROUP = "foliot.handlers"
_refused: dict[str, TypeRefusal] = {}  # of this process, as its settings want it


@dataclass(slots=True)
class Assignment:
    """One attempt: the job's configuration and the run's input, and how long it may take.

    `ended_by` tells a handler that is being cancelled what ended it: its deadline, a person, a shutdown.

    Neither this nor its context is frozen: both are made for every attempt, and a frozen one takes seven times as long to make.
    """

    ctx: Context
    config: Mapping[str, Any] = field(repr=False)  # with the values of its secrets
    input: Mapping[str, Any]
    left: timedelta = timedelta(hours=1)
    ended_by: Callable[[], Outcome | None] = field(default=lambda: None, repr=False, compare=False)


@dataclass(slots=True, unsafe_hash=True)
class HandlerResult:
    """What came of it. The output is JSON and is kept whether the attempt succeeded or not."""

    outcome: Outcome
    output: Any = None


@dataclass(frozen=True, slots=True)
class HandlerDescription:
    """What people are told of a type: a sentence, and what its configuration looks like."""

    description: str
    config_schema: Mapping[str, Any]
    config_shape: type[Shape] | None = None  # None: any object will do


@dataclass(frozen=True, slots=True)
class TypeRefusal:
    """Why jobs of a type are refused when they are written, and what would help."""

    message: str
    hint: str


class Handler(Protocol):
    """A class may say what it does in `description`, and what its configuration looks like in `config_shape`, a shape of the wire.

    Where it needs something of its process it has `from_deps(deps)`, which answers None where this process cannot serve it.
    One whose attempts only wait for work done elsewhere says `takes_permit = False`: they take no room from those that work here.
    """

    async def run(self, assignment: Assignment) -> HandlerResult:
        """Cancelled when the attempt must end (deadline, cancel, shutdown): then stop the work for real, and soon.

        An exception is a failure with the exception's name as its code.
        """
        ...

    async def close(self) -> None:
        """The worker is going."""
        ...


class _Unknown:
    """In the place of a handler that is not there: a worker is given only what it asks for, unless somebody else errs."""

    async def run(self, assignment: Assignment) -> HandlerResult:
        return failed("type_unknown", "This worker knows no such type of job.")

    async def close(self) -> None:
        pass


UNKNOWN_TYPE = _Unknown()


def succeeded(output: Any = None) -> HandlerResult:
    return HandlerResult(Succeeded(), output)


def failed(code: str, message: str, output: Any = None, *, permanent: bool = False) -> HandlerResult:
    return HandlerResult(Failed(RunError(code, message), permanent), output)


def takes_permit(handler: Handler) -> bool:
    return bool(getattr(handler, "takes_permit", True))


def load_handlers(deps: HandlerDeps) -> dict[str, Handler]:
    """Every handler by its type. One that cannot be loaded is told and left out: its jobs wait for a worker that can."""
    found: dict[str, Handler] = {}
    for entry in entry_points(group=GROUP):
        try:
            handler = _made(entry.load(), deps)
        except Exception:
            log.exception("handler.not_loaded", extra={"type": entry.name, "where": entry.value})
        else:
            if handler is not None:
                found[entry.name] = handler
    return found


@cache
def describe_types() -> Mapping[str, HandlerDescription]:
    """Every type installed here, without making its handler."""
    found: dict[str, HandlerDescription] = {}
    for entry in entry_points(group=GROUP):
        try:
            made = entry.load()
            shape = getattr(made, "config_shape", None)
            schema = {"type": "object"} if shape is None else shape.model_json_schema()
            found[entry.name] = HandlerDescription(str(getattr(made, "description", "")), schema, shape)
        except Exception:
            log.exception("handler.not_loaded", extra={"type": entry.name, "where": entry.value})
    return found


def refuse_type(kind: str, why: TypeRefusal | None) -> None:
    """This installation could never finish jobs of a type, so it does not take them. None takes them again."""
    if why is None:
        _refused.pop(kind, None)
    else:
        _refused[kind] = why


def type_refusal(kind: str) -> TypeRefusal | None:
    return _refused.get(kind)


def _made(kind: Any, deps: HandlerDeps) -> Handler | None:
    make = getattr(kind, "from_deps", None)
    handler: Handler | None = kind() if make is None else make(deps)
    return handler
