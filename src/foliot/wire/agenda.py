"""The agenda on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.instants import Id, Instant, WallTime
from foliot.wire.shape import Shape


class AgendaItemOut(Shape):
    """One planned time; or several of one job that follow each other in less than an hour, as one line."""

    job_id: Id
    job_name: str = Field(examples=["daily sync"])
    planned_for: Instant = Field(description="The planned time, or the first of several.")
    planned_local: WallTime
    starts_at: Instant = Field(
        description="When it goes off: later than planned where spread, window or calendar put it off."
    )
    count: int | None = Field(
        description="How many planned times this stands for; null: more than were counted."
    )
    last_for: Instant | None = Field(description="The last of several.")
    fate: Literal["runs", "skipped", "held"] = Field(
        description="As things stand. `held`: a freeze keeps it until it is over."
    )
    reason: str | None = Field(description="Why it is skipped.", examples=["frozen"])
    expected_duration_ms: int | None = Field(
        description="The middle of its newest successful runs; null before the first."
    )
    expected_end_at: Instant | None = Field(description="Of a single planned time that runs.")
    notes: list[str] = Field(description="What clock changes, windows, calendars and freezes do to it.")


class AgendaOut(Shape):
    start: Instant = Field(description="From here on: `from`, or now where that has gone by.")
    end: Instant = Field(description="Up to here, not included.")
    items: list[AgendaItemOut] = Field(description="By when they start; at most 1,000.")
    truncated: bool = Field(description="There is more than is listed.")
    complete_until: Instant = Field(
        description="Everything that starts before this is listed. Where it was cut, go on with this as `from`."
    )
