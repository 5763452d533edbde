"""`check_in`: watch work that is done elsewhere. The job has a schedule and no work of its own; a webhook takes word of starts and ends.

No worker serves this type: `services.webhooks.check_ins` starts and ends its runs.
"""

from __future__ import annotations

from typing import ClassVar

from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.registry import Assignment, HandlerResult, failed
from foliot.wire.shape import Shape


class CheckInConfig(Shape):
    """It has no fields: `start_deadline` says how late the first check-in may come (5 minutes if left out), `timeout` how long the work may take."""


class CheckInType:
    description: ClassVar = "Watch work that is done elsewhere, by its check-ins."
    config_shape: ClassVar = CheckInConfig

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> None:
        return None

    async def run(self, assignment: Assignment) -> HandlerResult:
        return failed("done_elsewhere", "This work is done elsewhere.", permanent=True)

    async def close(self) -> None:
        pass
