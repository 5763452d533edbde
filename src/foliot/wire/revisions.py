"""Revisions on the wire: what a job was, who made it so, and what that changed."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from foliot.wire.instants import Instant
from foliot.wire.jobs import JobDefinition
from foliot.wire.shape import Shape


class FieldChange(Shape):
    path: str = Field(description="JSON pointer into the job.", examples=["/schedule/expr"])
    before: Any
    after: Any


class RevisionOut(Shape):
    revision: int
    at: Instant = Field(description="In force from here on, until the next one.")
    actor: str
    note: str | None
    changes: list[FieldChange] = Field(
        description="Against the revision before; empty for the first that is known."
    )
    definition: JobDefinition


class RevertIn(Shape):
    revision: int = Field(ge=1, le=2**31 - 1)
    note: str | None = Field(default=None, min_length=1, max_length=1_000)
