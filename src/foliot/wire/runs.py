"""Runs on the wire."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from foliot.wire.instants import Id, Instant, WallTime
from foliot.wire.shape import Shape

RunStatus = Literal[
    "ready", "waiting", "running", "succeeded", "failed", "timed_out", "interrupted", "cancelled", "skipped"
]
Trigger = Literal["schedule", "manual", "dependency", "retry", "backfill", "import", "webhook"]


class RunErrorOut(Shape):
    code: str
    message: str


class RunOut(Shape):
    id: Id
    job_id: Id
    number: int
    status: RunStatus
    skip_reason: str | None
    trigger: Trigger
    planned_for: Instant
    planned_local: WallTime
    planned_until: Instant | None = Field(description="The last planned time of a gap record.")
    count: int | None = Field(
        description="How many planned times a gap record stands for; null with planned_until: beyond counting."
    )
    started_at: Instant | None
    finished_at: Instant | None
    duration_ms: int | None
    lag_ms: int | None
    attempt_count: int
    input: Any = Field(
        description="What was given for this run alone; null where the job's payload is all of it."
    )
    output: Any
    error: RunErrorOut | None
    worker: Id | None
