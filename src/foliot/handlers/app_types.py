"""Job types that an app registers: its functions, called as those of `python` are."""

from __future__ import annotations

from collections.abc import Mapping

from foliot.handlers.python import PythonHandler
from foliot.handlers.registry import Assignment, Described, Done, Handler
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.errors import Misdefined
from foliot.sdk.app.job_type import JobType


class AppType:
    """Does the jobs of one type. The processes belong to the python handler, which outlives it."""

    def __init__(self, job_type: JobType[..., object], python: PythonHandler) -> None:
        self._type = job_type
        self._python = python

    async def run(self, assignment: Assignment) -> Done:
        return await self._python.call(self._type.call, assignment, assignment.config)

    async def close(self) -> None:
        pass


def app_handlers(app: Foliot, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Those of the app beside those that are installed, which it may not replace."""
    python = handlers.get("python")
    assert isinstance(python, PythonHandler)
    for each in app.handlers:
        if each.name in handlers:
            raise Misdefined(
                f"The app {app.name} cannot register the job type {each.name}: there is one of that name.",
                hint="Give it another name.",
            )
    return {each.name: AppType(each, python) for each in app.handlers}


def app_described(app: Foliot) -> dict[str, Described]:
    return {each.name: Described(each.description, each.schema()) for each in app.handlers}
