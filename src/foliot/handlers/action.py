"""`action`: run one of the worker's named actions. `{"action": "vectorize", "parameters": {…}}`.

The actions are the job types of the app that the worker loads: functions whose `config` is typed, and here the parameters. They may
also be a list of `{"Name", "Value"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StringConstraints

from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.registry import Assignment, Handler, HandlerResult, failed
from foliot.wire.shape import Shape, refusal


def _by_name(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(each, dict) and "Name" in each for each in value):
        found = {str(each["Name"]): each.get("Value") for each in value}
        if len(found) < len(value):
            raise refusal("parameter_twice", "A parameter is named twice.", "Keep one of them.")
        return found
    return value


class ActionConfig(Shape):
    action: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(examples=["vectorize"])
    parameters: Annotated[dict[str, Any], BeforeValidator(_by_name)] = Field(
        default={}, max_length=200, description="By name, or a list of {Name, Value}."
    )


class ActionHandler:
    """Runs actions where the worker has an app; without one, its jobs wait for another worker."""

    description: ClassVar = "Run a named action of the worker's app."
    config_shape: ClassVar = ActionConfig

    def __init__(self, actions: Mapping[str, Handler]) -> None:
        self._actions = actions

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> None:
        return None

    async def run(self, assignment: Assignment) -> HandlerResult:
        name = str(assignment.config.get("action"))
        action = self._actions.get(name)
        if action is None:
            known = ", ".join(sorted(self._actions)) or "none"
            return failed(
                "action_unknown", f"This worker has no action {name!r}. It has: {known}.", permanent=True
            )
        parameters = _by_name(assignment.config.get("parameters") or {})
        return await action.run(replace(assignment, config=parameters))

    async def close(self) -> None:
        pass
