"""Workers, queues and job types on the wire: who could do the work, and what is in line for them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import Shape


class WorkerOut(Shape):
    id: Id
    name: str
    status: Literal["alive", "draining", "lost"]
    queues: list[str]
    host: str | None = Field(description="The host that it works for; such a worker serves no queue.")
    types: list[str]
    capacity: int = Field(description="How many runs it takes at once.")
    running: int = Field(description="Runs of this workspace that it has now.")
    since: Instant
    last_heartbeat_at: Instant
    version: str


class WorkersOut(Shape):
    items: list[WorkerOut]


class QueueOut(Shape):
    name: str
    ready: int = Field(description="Runs that a worker may take now, or at the time of their retry.")
    waiting: int = Field(description="Runs that may not start yet: behind another, at a cap, in a freeze.")
    running: int
    oldest_ready_at: Instant | None = Field(
        description="Since when the run that has been ready for longest could have started."
    )
    workers: int = Field(description="Live workers that serve it.")
    warnings: list[str] = Field(description="Which runs no live worker could take.")


class QueuesOut(Shape):
    items: list[QueueOut]


class JobTypeOut(Shape):
    name: str
    description: str | None = Field(description="null for a type that only workers elsewhere know.")
    config_schema: dict[str, Any] | None = Field(
        description="JSON Schema of `config`; null where none is known."
    )
    active: bool = Field(description="Whether a live worker does work of this type.")
    enabled: bool = Field(description="False where an administrator has switched it off for this workspace.")
    disabled_reason: str | None
    known_to: list[Literal["server", "workers"]]
    workers: int = Field(description="Live workers that know it.")


class JobTypeSwitch(Shape):
    enabled: bool
    reason: str = Field(default="", max_length=1_000, description="Why it is switched off.")


class JobTypesOut(Shape):
    items: list[JobTypeOut]
