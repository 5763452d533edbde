"""A function that is a job: still callable as it was written, and known to Foliot by a name."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from foliot.sdk.app.errors import Misdefined
from foliot.sdk.app.inputs import Inputs
from foliot.sdk.app.options import SCHEDULES, JobOptions, as_json, check_options

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot
    from foliot.wire.runs import RunOut

P = ParamSpec("P")
R = TypeVar("R")


class Job(Generic[P, R]):
    """`job(…)` calls the function here and now; Foliot calls it when the schedule says so, or `run_now` does."""

    def __init__(self, app: Foliot, function: Callable[P, R], options: JobOptions) -> None:
        update_wrapper(self, function)
        self.app = app
        self.function = function
        self.name = str(options.get("name") or getattr(function, "__name__", ""))
        self.inputs = Inputs.of(function)
        self._options = options
        check_options(options, f"@{app.name}.job of {self.name}")
        self.call = address(function, self.name)
        self._check_payload()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job {self.name!r} of app {self.app.name!r}: {self.call}>"

    def run_now(self, **given: object) -> RunOut:
        """Ask the server to run it, with this input laid over its payload. It runs on a worker, not here."""
        if problem := self.inputs.misfit({**self._options.get("payload", {}), **given}):
            raise TypeError(f"{self.name} {problem}")
        return self.app.run_now(self, given)

    def as_json(self) -> dict[str, Any]:
        """The job as the API takes it, with names where it has ids."""
        about = inspect.getdoc(self.function) or ""
        return {
            "description": about.partition("\n\n")[0],
            **as_json(self._options),
            "name": self.name,
            "type": "python",
            "config": self._config(),
            "external_ref": {"source": "code", "app": self.app.name},
        }

    def _config(self) -> dict[str, Any]:
        named = {here: {"secret": name} for here, name in self._options.get("secrets", {}).items()}
        return {"call": self.call, "secrets": named} if named else {"call": self.call}

    def _check_payload(self) -> None:
        payload, where = self._options.get("payload", {}), f"The payload of {self.name} does not fit:"
        is_planned = any(name in self._options for name in SCHEDULES) or "depends_on" in self._options
        if problem := self.inputs.misfit(payload, whole=False):
            raise Misdefined(f"{where} it {problem}")
        if is_planned and (problem := self.inputs.misfit(payload)):
            raise Misdefined(
                f"{self.name} {problem}",
                hint="Give these parameters defaults, or values in payload=: nobody is there to name them when it is due.",
            )
        try:
            json.dumps(payload, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise Misdefined(f"{where} it is not JSON: {error}.") from None


def address(function: Callable[..., Any], name: str) -> str:
    """`module:function`, by which a worker finds it again."""
    path = getattr(function, "__qualname__", "")
    if not path or "<" in path or "." in path:
        raise Misdefined(
            f"{name or function!r} cannot be a job: a worker could not find it.",
            hint="Define it with def at the top of a module.",
        )
    return f"{_module(function.__module__)}:{path}"


def _module(name: str) -> str:
    """The program itself is called __main__ here; elsewhere it has the name of its file."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return str(spec.name if spec else Path(file).stem if file else name)
