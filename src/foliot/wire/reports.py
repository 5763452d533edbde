"""Statistics, agenda and explanations on the wire."""

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
    records: int = Field(description="Records, skips included.")
    runs: int = Field(description="Runs that were attempted.")
    successes: int
    failures: int = Field(description="Failed, timed out or interrupted.")
    skips: int = Field(description="Planned times that did not run.")
    success_rate: int | None = Field(description=RATE)
    average_duration_ms: int | None
    average_lag_ms: int | None


class DayOut(Shape):
    day: Day = Field(description="The UTC day of the records.")
    records: int
    runs: int
    successes: int
    failures: int
    skips: int
    success_rate: int | None = Field(description=RATE)
    average_duration_ms: int | None
    average_lag_ms: int | None
    p95_duration_ms: int | None = Field(
        default=None, description="With `percentiles`: of a sample of its runs; null for days long past."
    )
    p95_lag_ms: int | None = None


class PercentilesOut(Shape):
    """In milliseconds."""

    p50: int
    p95: int
    p99: int


class NewestOut(Shape):
    """Over the newest 1,000 runs that were attempted."""

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
    """Open runs. Each number is counted up to 10,000."""

    ready: int = Field(description="Runs that a worker may take, or that wait for their next attempt.")
    waiting: int = Field(description="Runs that may not start yet.")
    running: int
    late: int = Field(description="Jobs that are more than two minutes overdue: the scheduler is behind.")
    next_due_at: Instant | None = Field(description="The next planned time of any job.")


class StatsOut(Shape):
    as_of: Instant
    jobs: JobCountsOut = Field(description="Jobs by status.")
    now: NowOut
    days: list[DayOut] = Field(description="Oldest first; days without records are left out.")
    totals: TotalsOut
    newest: NewestOut


class StatsNowOut(Shape):
    """The state of the workspace at this moment, for status lines and monitors: costs little however large the workspace is."""

    as_of: Instant
    now: NowOut
    newest: NewestOut = Field(description="Over the newest 200 runs that were attempted.")
    jobs: JobCountsOut | None = Field(
        description="Jobs by status, if asked for. Each number is counted up to 10,001: a status with more says 10001."
    )
    totals: TotalsOut | None = Field(default=None, description="Of the last `days`, if asked for.")


class AgendaItemOut(Shape):
    """One planned time; or several of one job that follow each other in less than an hour, as one line."""

    job_id: Id
    job_name: str = Field(examples=["daily sync"])
    planned_for: Instant = Field(description="The planned time, or the first of several.")
    planned_local: WallTime
    starts_at: Instant = Field(
        description="The start: later than planned if spread, window or calendar delay it."
    )
    count: int | None = Field(description="The number of planned times; null if not counted.")
    last_for: Instant | None = Field(description="The last of several.")
    fate: Literal["runs", "skipped", "held"] = Field(description="As of now. `held`: until a freeze ends.")
    reason: str | None = Field(description="Why it is skipped.", examples=["frozen"])
    expected_duration_ms: int | None = Field(
        description="The median of its newest successful runs; null before the first."
    )
    expected_end_at: Instant | None = Field(description="Of a single planned time that runs.")
    notes: list[str] = Field(description="Effects of clock changes, windows, calendars and freezes.")


class ClosureOut(Shape):
    """A span in which a calendar closes."""

    calendar_id: Id
    name: str = Field(description="Of the calendar.")
    start: Instant
    end: Instant


class AgendaOut(Shape):
    start: Instant = Field(description="The start: `from`, or now if that has passed.")
    end: Instant = Field(description="Up to here, not included.")
    items: list[AgendaItemOut] = Field(description="By when they start; at most 1,000.")
    truncated: bool = Field(description="There are more.")
    complete_until: Instant = Field(
        description="Everything that starts before this is listed. If truncated, continue with it as `from`."
    )
    closures: list[ClosureOut] = Field(
        default=[],
        description="With `closures`: when the calendars of these jobs close, from a day before `start` on; at most 50 of each.",
    )
    notes: list[str] = Field(
        default=[], description="What keeps every planned time from running now: held firing, no scheduler."
    )


class DensityOut(Shape):
    """How many runs are planned in each of the equal parts of a span, from now on. Times that follow each other closely are taken as evenly spread."""

    start: Instant
    end: Instant = Field(description="Up to here, not included.")
    bucket_seconds: float
    counts: list[int] = Field(description="Planned runs that are expected to run, of each part.")
    runs: int = Field(description="All of them.")
    jobs: int = Field(description="Jobs that may have planned times.")
    counted_jobs: int = Field(
        description="Jobs that the counts were made of. Fewer than `jobs`: the counts are an estimate."
    )
    estimated: bool = Field(description="An estimate is made at most once a minute.")
    as_of: Instant
    closures: list[ClosureOut] = Field(
        default=[],
        description="With `closures`: when the calendars of the counted jobs close; at most 50 of each.",
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
    "will_wait",
]
WaitsFor = Literal["turn", "upstream", "freeze", "window", "limit", "type", "worker"]


class PlaceOut(Shape):
    """The position of a waiting run among those of its workspace."""

    waits_for: WaitsFor
    position: int | None = Field(description="From 1; null without a queue.", examples=[2])
    of: int | None = Field(description="The length of that queue.", examples=[5])
    behind: str | None = Field(description="The name of what it waits for.", examples=["run 11"])
    until: Instant | None = Field(description="The latest time at which it starts or expires.")


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
    facts: list[str] = Field(description="Further facts.")
    what_next: list[str] = Field(description="Possible actions; empty if all is well.")
    job_id: Id
    job_status: JobStatus
    at: Instant | None = Field(description="The instant explained; null for a run.")
    run: RunOut | None = Field(description="The record behind the answer.")
    place: PlaceOut | None = Field(description="For a run that waits.")
    nearest: NearestOut | None = Field(description="The planned times around the instant; null for a run.")
    links: dict[str, str] = Field(
        description="Where to go on, by name: job, next, runs, run, attempts; and what can be done: retry, cancel, resume.",
        examples=[{"job": "/api/v1/jobs/0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"}],
    )
