"""`celery`, `rq` and `bullmq`: hand the run over to a queue engine that a team already runs, and wait for the engine's result.

An attempt here only waits, so it takes no permit; a worker may wait for a thousand of them. The operator decides which queues and tasks
jobs may name (`domain/bridge_policy.py`): checked when a job is written, and again here before the run is handed over.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo

from foliot.domain.bridge_policy import DEFAULT_PREFIX, DEFAULT_QUEUE
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.registry import Assignment, HandlerResult, TypeRefusal
from foliot.wire.shape import Shape, refusal

if TYPE_CHECKING:
    from foliot.handlers.bridge.bridge import Bridge
    from foliot.handlers.bridge.engine import QueueEngine

log = logging.getLogger(__name__)

NO_RESULT_BACKEND = TypeRefusal(
    "Celery keeps no results here, so Foliot cannot learn how a run ended.",
    "Set FOLIOT_CELERY_RESULT_URL to the Redis that Celery's result_backend names, for the server and its workers.",
)

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[^\s:\x00-\x1f]+")


def _name(value: str) -> str:
    """Refuse colons: BullMQ and others separate the parts of their Redis keys by them."""
    if not _NAME.fullmatch(value):
        raise refusal("name", "This name is not valid for every engine.", "It has no blanks and no colons.")
    return value


def _function(value: str) -> str:
    if not _DOTTED.fullmatch(value):
        raise refusal(
            "function",
            "This names no function.",
            "Write it as package.module.function, such as shop.jobs.sync.",
        )
    return value


Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_name)]
QueueName = Annotated[
    Name,
    Field(
        description="The engine's queue; {workspace} stands for the slug of the workspace.",
        examples=["jobs-acme"],
    ),
]
Arguments = Annotated[
    Literal["keywords", "input"],
    Field(
        description="keywords: each key of the run's input is an argument; input: all of it is the only argument."
    ),
]
BRIDGE_POLICY = (
    "bridge_policy"  # in the context of a validation: what may be handed over, and the slug of the workspace
)


def _allowed(value: str, info: ValidationInfo) -> str:
    bridge_policy, slug = (info.context or {}).get(BRIDGE_POLICY, (None, ""))
    if bridge_policy is None:
        return value
    if info.field_name == "queue":
        found = bridge_policy.refusal_of_queue(value, slug, info.data.get("prefix", DEFAULT_PREFIX))
    else:
        found = bridge_policy.refusal_of_task(info.field_name, value)
    if found is not None:
        raise refusal("handing", found.message, found.hint)
    return value


Task = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_allowed)]
AllowedQueue = Annotated[QueueName, AfterValidator(_allowed), Field(validate_default=True)]


class CeleryConfig(Shape):
    task: Task = Field(examples=["shop.tasks.sync"])
    queue: AllowedQueue = DEFAULT_QUEUE
    arguments: Arguments = "keywords"


class RqConfig(Shape):
    function: Annotated[Task, AfterValidator(_function)] = Field(examples=["shop.tasks.sync"])
    queue: AllowedQueue = DEFAULT_QUEUE
    arguments: Arguments = "keywords"
    serializer: Literal["pickle", "json"] = Field(
        default="pickle", description="Serializer that the workers of this queue use; RQ's default is pickle."
    )


def _bullmq_name(value: str) -> str:
    """Allow colons between the parts of the name, as in `jobs:acme`: they are parts of the keys in Redis."""
    if not all(_NAME.fullmatch(part) for part in value.split(":")):
        raise refusal(
            "name", "This is not a valid queue name.", "It has no blanks, and a colon only between parts."
        )
    return value


class BullmqConfig(Shape):
    name: Task = Field(examples=["sync"], description="The job's name.")
    data: Literal["input", "envelope", "bare"] = Field(
        default="input",
        description="The job's data. input: the run's input, and the facts of the run under `foliot`; envelope: jobId, jobRunId, hostId, "
        "type, payload, attempt, plannedFor and trigger; bare: the run's input alone.",
    )
    target: str | None = Field(
        default=None, max_length=200, description="Passed on to the worker, as `target` or `hostId`."
    )
    prefix: Name = Field(
        default=DEFAULT_PREFIX, description="Prefix of all keys that the queue has in Redis."
    )
    queue: Annotated[  # after the prefix, which is checked with it
        str,
        StringConstraints(max_length=200),
        AfterValidator(_bullmq_name),
        AfterValidator(_allowed),
        Field(
            validate_default=True,
            description="The queue; {workspace} or {orgId} stands for the slug of the workspace. "
            "Where the name has colons, the queue of a worker is its last part, and the others belong to its prefix.",
            examples=["jobs-acme", "jobs:{orgId}"],
        ),
    ] = DEFAULT_QUEUE


class _Bridged:
    takes_permit: ClassVar = False

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self._bridge.run(assignment)

    async def close(self) -> None:
        await self._bridge.close()

    @classmethod
    def _create(cls, extra: str, make: Callable[[], QueueEngine], deps: HandlerDeps) -> Self | None:
        """Return None, with a warning in the log, where the engine's library is not installed."""
        assert deps.database is not None
        try:
            from foliot.handlers.bridge.bridge import Bridge  # noqa: PLC0415  # its libraries come with the extras

            return cls(Bridge(make(), deps.database, deps.egress_policy.bridge_policy))
        except ModuleNotFoundError as missing:
            hint = f"pip install 'foliot[{extra}]'"
            log.warning("bridge.not_installed", extra={"type": extra, "missing": missing.name, "hint": hint})
            return None

    @classmethod
    def _create_on_redis(
        cls, extra: str, make: Callable[[str], QueueEngine], deps: HandlerDeps
    ) -> Self | None:
        url = deps.queue_engines.redis_url
        if deps.database is None or url is None:
            return None
        return cls._create(extra, lambda: make(url), deps)


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

        return cls._create("celery", make, deps)


class RqHandler(_Bridged):
    description: ClassVar = "Hand the run to a function of RQ's workers, and wait for its result."
    config_shape: ClassVar = RqConfig

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> Self | None:
        def make(url: str) -> QueueEngine:
            from foliot.handlers.bridge.rq import RqEngine  # noqa: PLC0415

            return RqEngine(url)

        return cls._create_on_redis("rq", make, deps)


class BullmqHandler(_Bridged):
    description: ClassVar = "Hand the run to a queue of BullMQ, and wait for its result."
    config_shape: ClassVar = BullmqConfig

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> Self | None:
        def make(url: str) -> QueueEngine:
            from foliot.handlers.bridge.bullmq import BullmqEngine  # noqa: PLC0415

            return BullmqEngine(url)

        return cls._create_on_redis("bullmq", make, deps)
