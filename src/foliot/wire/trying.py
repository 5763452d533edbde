"""What a change would mean, on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.instants import Instant
from foliot.wire.jobs import JobOut
from foliot.wire.schedules import PlannedOut
from foliot.wire.shape import Shape


class MovedOut(Shape):
    before: Instant
    after: Instant


class DifferenceOut(Shape):
    """Runs ahead, by when they start; compared over the next 50 of each or 30 days, whichever ends first."""

    added: list[Instant]
    removed: list[Instant]
    moved: list[MovedOut] = Field(description="The same day, another time.")
    unchanged: int
    until: Instant = Field(description="How far was looked.")


class DryRunOut(Shape):
    dry_run: Literal[True] = True
    job: JobOut | None = Field(description="As it would stand; null where it would be gone.")
    words: str | None = Field(description="Its schedule in a sentence.")
    items: list[PlannedOut] = Field(description="The first of the runs ahead.")
    warnings: list[str]
    difference: DifferenceOut
