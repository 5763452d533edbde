"""The audit on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import Shape


class ActorOut(Shape):
    id: str = Field(description="A principal's id, or a word for Foliot's own doing, such as engine.")
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
