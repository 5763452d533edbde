"""The audit on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import Shape


class ActorOut(Shape):
    id: str = Field(description="A principal's id, or a name for the server itself, such as engine.")
    name: str | None
    kind: str | None


class ObjectOut(Shape):
    kind: str
    id: str


class AuditOut(Shape):
    id: Id
    at: Instant
    actor: ActorOut
    key: Id | None
    address: str | None
    action: str = Field(examples=["job.paused"])
    object: ObjectOut
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str | None


class EventOut(Shape):
    id: str = Field(description="Send the last one as Last-Event-ID to resume.")
    kind: str = Field(examples=["run.succeeded", "job.paused", "freeze.turned_on"])
    at: Instant
    object_id: Id | None = Field(description="The calendar, freeze or incident; else null.")
    job_id: Id | None
    job_name: str | None
    run_id: Id | None
    number: int | None = Field(description="The run's number.")
    planned_for: Instant | None
    attempt: int | None
    skip_reason: str | None
    error_code: str | None
    actor: str | None = Field(description="The principal; null for the schedule and workers.")


class MissedEventsOut(Shape):
    """The data of the event `reset`."""

    reason: str
