"""Figures on the wire: of a job, of a workspace."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.instants import Day, Id, Instant, WallTime
from foliot.wire.jobs import JobStatus
from foliot.wire.runs import RunOut, RunStatus
from foliot.wire.schedules import PlannedOut
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


Verdict = Literal[
    "ran",
    "running",
    "waiting",
    "skipped",
    "not_planned",
    "not_created",
    "unrecorded",
    "will_run",
    "will_not_run",
]
WaitsFor = Literal["turn", "upstream", "freeze", "window", "limit", "type", "worker"]


class PlaceOut(Shape):
    """Where a run stands that waits, among those of its own workspace."""

    waits_for: WaitsFor
    position: int | None = Field(description="From 1 on; null where there is no line.", examples=[2])
    of: int | None = Field(description="How many are in that line.", examples=[5])
    behind: str | None = Field(description="What it waits for, by name.", examples=["run 11"])
    until: Instant | None = Field(description="When it may start, or is given up, at the latest.")


class NearestOut(Shape):
    before: PlannedOut | None = Field(description="At the instant, or the last before it.")
    after: PlannedOut | None


class ExplanationOut(Shape):
    verdict: Verdict = Field(description="Stable; programs may rely on it.")
    sentence: str = Field(
        examples=[
            (
                "The planned time of 2027-01-05 06:00:00 America/Bogota (UTC-05:00) was skipped because an earlier run of this job"
                " was still live."
            )
        ]
    )
    facts: list[str] = Field(description="What else is known.")
    what_next: list[str] = Field(description="What to do about it; empty where all is well.")
    job_id: Id
    job_status: JobStatus
    at: Instant | None = Field(description="The instant explained; null for a run.")
    run: RunOut | None = Field(description="The record it is told from.")
    place: PlaceOut | None = Field(description="Of a run that waits.")
    nearest: NearestOut | None = Field(description="The planned times around the instant; null for a run.")
    links: dict[str, str] = Field(
        description="Where to go on, by name: job, next, runs, run, attempts; and what can be done: retry, cancel, resume.",
        examples=[{"job": "/api/v1/jobs/0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"}],
    )
