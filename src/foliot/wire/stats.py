"""Figures on the wire: of a job, of a workspace."""

from __future__ import annotations

from pydantic import Field

from foliot.wire.instants import Day, Instant
from foliot.wire.runs import RunStatus
from foliot.wire.shape import Shape

RATE = (
    "Whole percent of the runs that succeeded or failed, rounded down: 100 means every one. Null without any."
)


class TotalsOut(Shape):
    records: int = Field(description="Records made, skipped ones included.")
    runs: int = Field(description="Runs that were attempted.")
    successes: int
    failures: int = Field(description="Failed, timed out or interrupted.")
    skips: int = Field(description="Planned times that did not run.")
    success_rate: int | None = Field(description=RATE)
    average_duration_ms: int | None
    average_lag_ms: int | None


class DayOut(Shape):
    day: Day = Field(description="A UTC day: that on which the records were made.")
    records: int
    runs: int
    successes: int
    failures: int
    skips: int
    success_rate: int | None = Field(description=RATE)
    average_duration_ms: int | None
    average_lag_ms: int | None


class PercentilesOut(Shape):
    """In milliseconds."""

    p50: int
    p95: int
    p99: int


class NewestOut(Shape):
    """Over the newest runs that were attempted, 1,000 at most."""

    runs: int
    duration_ms: PercentilesOut | None
    lag_ms: PercentilesOut | None


class JobStatsOut(Shape):
    days: list[DayOut] = Field(description="Oldest first; days without records are left out.")
    totals: TotalsOut
    newest: NewestOut
    last_run_at: Instant | None
    last_run_status: RunStatus | None


class JobCountsOut(Shape):
    pending: int = 0
    active: int = 0
    paused: int = 0
    disabled: int = 0
    completed: int = 0
    failed: int = 0
    expired: int = 0
    archived: int = 0


class NowOut(Shape):
    """What is open at this moment. Each is counted up to 10,000."""

    ready: int = Field(description="Runs that a worker may take, or that wait for their next attempt.")
    waiting: int = Field(description="Runs that may not start yet.")
    running: int
    late: int = Field(
        description="Jobs whose time came more than two minutes ago and is not recorded: no scheduler keeps up."
    )
    next_due_at: Instant | None = Field(description="When the next job goes off.")


class StatsOut(Shape):
    as_of: Instant
    jobs: JobCountsOut = Field(description="Jobs by status.")
    now: NowOut
    days: list[DayOut] = Field(description="Oldest first; days without records are left out.")
    totals: TotalsOut
    newest: NewestOut
