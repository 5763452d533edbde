"""`celery`, `rq` and `bullmq`: the run is handed over to an engine that a team already runs, and its end is the engine's last word.

An attempt here only waits, so it takes no permit; a worker may wait for a thousand of them. Which queues and which tasks jobs may name,
the operator says (`domain/bridge_policy.py`): asked when a job is written, and again here before it is handed over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self

from foliot.handlers.config_fields import BullmqConfig, CeleryConfig, RqConfig
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.registry import Assignment, HandlerResult, TypeRefusal

if TYPE_CHECKING:
    from foliot.handlers.bridge.bridge import Bridge
    from foliot.handlers.bridge.engine import QueueEngine

log = logging.getLogger(__name__)

NO_RESULT_BACKEND = TypeRefusal(
    "Celery keeps no results here, so nobody could know how a run ended.",
    "Set FOLIOT_CELERY_RESULT_URL to the Redis that Celery's result_backend names, for the server and its workers.",
)


class _Bridged:
    takes_permit: ClassVar = False

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self._bridge.carry(assignment)

    async def close(self) -> None:
        await self._bridge.close()

    @classmethod
    def _over(cls, extra: str, make: Callable[[], QueueEngine], deps: HandlerDeps) -> Self | None:
        """None, and a word about it, where the engine's library is not installed."""
        assert deps.database is not None
        try:
            from foliot.handlers.bridge.bridge import Bridge  # noqa: PLC0415  # what it needs comes with the extras

            return cls(Bridge(make(), deps.database, deps.egress_policy.handing))
        except ModuleNotFoundError as missing:
            hint = f"pip install 'foliot[{extra}]'"
            log.warning("bridge.not_installed", extra={"type": extra, "missing": missing.name, "hint": hint})
            return None

    @classmethod
    def _over_redis(cls, extra: str, make: Callable[[str], QueueEngine], deps: HandlerDeps) -> Self | None:
        url = deps.queue_engines.redis_url
        if deps.database is None or url is None:
            return None
        return cls._over(extra, lambda: make(url), deps)


class CeleryHandler(_Bridged):
    description: ClassVar = "Hand the run to a Celery task, and wait for its result."
    config_shape: ClassVar = CeleryConfig

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> Self | None:
        broker, results = deps.queue_engines.celery_broker_url, deps.queue_engines.celery_result_url
        if deps.database is None or broker is None:
            return None
        if results is None:
            log.warning(
                "bridge.without_results",
                extra={"reason": NO_RESULT_BACKEND.message, "hint": NO_RESULT_BACKEND.hint},
            )
            return None

        def make() -> QueueEngine:
            from foliot.handlers.bridge.celery import CeleryEngine  # noqa: PLC0415

            return CeleryEngine(broker, results)

        return cls._over("celery", make, deps)


class RqHandler(_Bridged):
    description: ClassVar = "Hand the run to a function of RQ's workers, and wait for its result."
    config_shape: ClassVar = RqConfig

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> Self | None:
        def make(url: str) -> QueueEngine:
            from foliot.handlers.bridge.rq import RqEngine  # noqa: PLC0415

            return RqEngine(url)

        return cls._over_redis("rq", make, deps)


class BullmqHandler(_Bridged):
    description: ClassVar = "Hand the run to a queue of BullMQ, and wait for its result."
    config_shape: ClassVar = BullmqConfig

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> Self | None:
        def make(url: str) -> QueueEngine:
            from foliot.handlers.bridge.bullmq import BullmqEngine  # noqa: PLC0415

            return BullmqEngine(url)

        return cls._over_redis("bullmq", make, deps)
