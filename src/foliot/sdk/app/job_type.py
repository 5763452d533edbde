"""A function that does all jobs of one type: what it takes of them, and what their configuration must look like."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from foliot.sdk.app.errors import Misdefined
from foliot.sdk.app.job import address
from foliot.sdk.context import Context

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot

P = ParamSpec("P")
R = TypeVar("R")
PARTS = ("config", "input", "ctx")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)


class JobType(Generic[P, R]):
    """Still callable as it was written. A worker that loads the app does jobs of this type with it."""

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
            raise Misdefined(
                f"A job type cannot be called {name!r}.",
                hint="A letter, then letters, digits and - _ . up to 64, such as DATA_SYNC.",
            )
        self.app = app
        self.name = name
        self.function = function
        self.config = config
        self.description = description or (inspect.getdoc(function) or "").partition("\n\n")[0]
        self.call = address(function, name)
        self._takes = tuple(inspect.signature(function).parameters)
        if unknown := [each for each in self._takes if each not in PARTS]:
            raise Misdefined(
                f"The handler of {name} takes {', '.join(unknown)}, which it cannot be given.",
                hint="Its parameters are called config, input and ctx; it may leave out what it does not need.",
            )
        self.schema()  # whatever is wrong with it is told where it is written

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job type {self.name!r} of app {self.app.name!r}: {self.call}>"

    def schema(self) -> dict[str, Any]:
        """JSON Schema of a job's config."""
        if self.config is None:
            return {"type": "object"}
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(self.config).json_schema()
        except Exception as error:
            raise Misdefined(
                f"The config of {self.name} cannot be described: {error}",
                hint="Give a pydantic model, a dataclass or a TypedDict.",
            ) from error

    def bound(self, config: Mapping[str, Any], given: Mapping[str, Any], ctx: Context) -> Callable[[], Any]:
        """ValueError where the config does not fit."""
        parts: dict[str, Any] = {"config": self._read(config), "input": dict(given), "ctx": ctx}
        return partial(self.function, **{name: parts[name] for name in self._takes})

    def _read(self, config: Mapping[str, Any]) -> Any:
        if self.config is None:
            return dict(config)
        from pydantic import TypeAdapter

        return TypeAdapter(self.config).validate_python(dict(config))
