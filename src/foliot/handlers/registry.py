"""The registry of handlers. Ours and those of other packages are found by the entry points `foliot.handlers`."""

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
_refused: dict[str, TypeRefusal] = {}  # in this process, by its settings


@dataclass(slots=True)
class Assignment:
    """One attempt: the job's configuration, the run's input and the time left.

    `ended_by` returns what ends a cancelled attempt: its deadline, a person, a shutdown.

    Neither this nor its context is frozen: both are made for every attempt, and a frozen one takes seven times as long to make.
    """

    ctx: Context
    config: Mapping[str, Any] = field(repr=False)  # with the values of its secrets
    input: Mapping[str, Any]
    left: timedelta = timedelta(hours=1)
    ended_by: Callable[[], Outcome | None] = field(default=lambda: None, repr=False, compare=False)


@dataclass(slots=True, unsafe_hash=True)
class HandlerResult:
    """The outcome of an attempt. The output is JSON and is kept whether the attempt succeeded or not."""

    outcome: Outcome
    output: Any = None


@dataclass(frozen=True, slots=True)
class HandlerDescription:
    """Describe a job type: a sentence, and the schema of its configuration."""

    description: str
    config_schema: Mapping[str, Any]
    config_shape: type[Shape] | None = None  # None accepts any object


@dataclass(frozen=True, slots=True)
class TypeRefusal:
    """Explain why jobs of a type are refused when they are written."""

    message: str
    hint: str


class Handler(Protocol):
    """A class may have a `description`, and a `config_shape`: the wire shape of its configuration.

    A class that needs parts of its process has `from_deps(deps)`, which returns None where this process cannot serve its jobs.
    A class whose attempts only wait for another engine sets `takes_permit = False`: they do not count against the permits.
    """

    async def run(self, assignment: Assignment) -> HandlerResult:
        """Execute the attempt. It is cancelled at a deadline, a cancel or a shutdown: then stop the work for real, and soon.

        An exception is a failure with the exception's name as its code.
        """
        ...

    async def close(self) -> None:
        """Release resources: the worker stops."""
        ...


class _UnknownType:
    """Replace a missing handler. A worker gets only the types that it claims, unless the server errs."""

    async def run(self, assignment: Assignment) -> HandlerResult:
        return failed("type_unknown", "This worker does not know this job type.")

    async def close(self) -> None:
        pass


UNKNOWN_TYPE = _UnknownType()


def succeeded(output: Any = None) -> HandlerResult:
    return HandlerResult(Succeeded(), output)


def failed(code: str, message: str, output: Any = None, *, permanent: bool = False) -> HandlerResult:
    return HandlerResult(Failed(RunError(code, message), permanent), output)


def takes_permit(handler: Handler) -> bool:
    return bool(getattr(handler, "takes_permit", True))


def load_handlers(deps: HandlerDeps) -> dict[str, Handler]:
    """Return every handler by its type. One that cannot be loaded is logged and left out: its jobs wait for another worker."""
    found: dict[str, Handler] = {}
    for entry in entry_points(group=GROUP):
        try:
            handler = _create(entry.load(), deps)
        except Exception:
            log.exception("handler.load_failed", extra={"type": entry.name, "where": entry.value})
        else:
            if handler is not None:
                found[entry.name] = handler
    return found


@cache
def describe_types() -> Mapping[str, HandlerDescription]:
    """Describe every installed type, without creating its handler."""
    found: dict[str, HandlerDescription] = {}
    for entry in entry_points(group=GROUP):
        try:
            made = entry.load()
            shape = getattr(made, "config_shape", None)
            schema = {"type": "object"} if shape is None else shape.model_json_schema()
            found[entry.name] = HandlerDescription(str(getattr(made, "description", "")), schema, shape)
        except Exception:
            log.exception("handler.load_failed", extra={"type": entry.name, "where": entry.value})
    return found


def refuse_type(kind: str, why: TypeRefusal | None) -> None:
    """Refuse new jobs of a type that this installation could never finish. None accepts them again."""
    if why is None:
        _refused.pop(kind, None)
    else:
        _refused[kind] = why


def type_refusal(kind: str) -> TypeRefusal | None:
    return _refused.get(kind)


def _create(kind: Any, deps: HandlerDeps) -> Handler | None:
    make = getattr(kind, "from_deps", None)
    handler: Handler | None = kind() if make is None else make(deps)
    return handler
