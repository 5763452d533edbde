"""Functions that are jobs, and functions that handle a job type. Both stay callable as plain functions."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, get_type_hints

from foliot.sdk.app.inputs import FunctionInputs
from foliot.sdk.app.options import SCHEDULES, AppDefinitionError, JobOptions, as_json, check_options
from foliot.sdk.context import Context

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot
    from foliot.wire.runs import RunOut

P = ParamSpec("P")
R = TypeVar("R")


class Job(Generic[P, R]):
    """`job(…)` calls the function directly. A worker calls it on schedule, or after `run_now`."""

    def __init__(self, app: Foliot, function: Callable[P, R], options: JobOptions) -> None:
        update_wrapper(self, function)
        self.app = app
        self.function = function
        self.name = str(options.get("name") or getattr(function, "__name__", ""))
        self.inputs = FunctionInputs.of(function)
        self._options = options
        check_options(options, f"@{app.name}.job of {self.name}")
        self.call = address(function, self.name)
        self._check_payload()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job {self.name!r} of app {self.app.name!r}: {self.call}>"

    def run_now(self, **given: object) -> RunOut:
        """Start a run on the server, with this input merged over the payload. A worker executes it."""
        self._check_input(given)
        return self.app.run_now(self, [given])[0]

    def run_each(self, inputs: Iterable[Mapping[str, object]]) -> list[RunOut]:
        """Start a run for each of these inputs, in their order. With `overlap="concurrent"` workers execute them side by side."""
        found = list(inputs)
        for given in found:
            self._check_input(given)
        return self.app.run_now(self, found)

    def _check_input(self, given: Mapping[str, object]) -> None:
        whole = {**self._options.get("payload", {}), **given}
        if problem := self.inputs.misfit(whole):
            raise TypeError(f"{self.name} {problem}")
        try:
            self.inputs.read(self.function, whole)
        except ValueError as error:
            raise TypeError(f"The input does not fit {self.name}: {error}") from None

    def as_json(self) -> dict[str, Any]:
        """Return the job as JSON for the API, with names in place of ids."""
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
            raise AppDefinitionError(f"{where} it {problem}")
        if is_planned and (problem := self.inputs.misfit(payload)):
            raise AppDefinitionError(
                f"{self.name} {problem}",
                hint="Give these parameters defaults, or set them in payload=.",
            )
        try:
            json.dumps(payload, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AppDefinitionError(f"{where} it is not JSON: {error}.") from None


def address(function: Callable[..., Any], name: str) -> str:
    """Return `module:function`, by which a worker finds it."""
    path = getattr(function, "__qualname__", "")
    if not path or "<" in path or "." in path:
        raise AppDefinitionError(
            f"{name or function!r} cannot be a job: a worker cannot import it.",
            hint="Define it with def at the top level of a module.",
        )
    return f"{_module(function.__module__)}:{path}"


def _module(name: str) -> str:
    """Return the importable name of a module: __main__ has the name of its file elsewhere."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return str(spec.name if spec else Path(file).stem if file else name)


if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot

PARTS = ("config", "input", "ctx")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)


class JobType(Generic[P, R]):
    """A worker that loads the app executes jobs of this type with the function."""

    def __init__(
        self,
        app: Foliot,
        name: str,
        function: Callable[P, R],
        config: Any = None,
        description: str | None = None,
    ) -> None:
        update_wrapper(self, function)
        if not _NAME.fullmatch(name):
            raise AppDefinitionError(
                f"{name!r} is not a valid job type.",
                hint="Use a letter, then letters, digits and - _ . up to 64, such as DATA_SYNC.",
            )
        self.app = app
        self.name = name
        self.function = function
        self.config = config
        self.description = description or (inspect.getdoc(function) or "").partition("\n\n")[0]
        self.call = address(function, name)
        self._takes = tuple(inspect.signature(function).parameters)
        if unknown := [each for each in self._takes if each not in PARTS]:
            raise AppDefinitionError(
                f"The handler of {name} has unknown parameters: {', '.join(unknown)}.",
                hint="A handler takes any of config, input and ctx.",
            )
        self.schema()  # raises at the definition, not later

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job type {self.name!r} of app {self.app.name!r}: {self.call}>"

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a job's config, with that of the input beside it (`x-input-schema`) where the function names its type."""
        return _schema_of(self.name, self.config) | self._input_schema()

    def _input_schema(self) -> dict[str, Any]:
        """Return the schema of the input where its type names fields, such as a TypedDict: the console makes a form of it."""
        try:
            hint = get_type_hints(self.function).get("input") if "input" in self._takes else None
            found = _schema_of(self.name, hint)
        except (AppDefinitionError, NameError, TypeError):
            return {}  # the form falls back to JSON
        return {"x-input-schema": found} if "properties" in found and "$defs" not in found else {}

    def bound(self, config: Mapping[str, Any], given: Mapping[str, Any], ctx: Context) -> Callable[[], Any]:
        """Return the call with its arguments. Raise ValueError if the config is not valid."""
        parts: dict[str, Any] = {"config": self._read(config), "input": dict(given), "ctx": ctx}
        return partial(self.function, **{name: parts[name] for name in self._takes})

    def _read(self, config: Mapping[str, Any]) -> Any:
        if self.config is None:
            return dict(config)
        from pydantic import TypeAdapter

        return TypeAdapter(self.config).validate_python(dict(config))


def _schema_of(name: str, shape: Any) -> dict[str, Any]:
    if shape is None:
        return {"type": "object"}
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(shape).json_schema()
    except Exception as error:
        raise AppDefinitionError(
            f"The config of {name} has no JSON schema: {error}",
            hint="Use a pydantic model, a dataclass or a TypedDict.",
        ) from error
