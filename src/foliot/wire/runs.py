"""Runs on the wire."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from foliot.wire.instants import Id, Instant, WallTime
from foliot.wire.jobs import JsonObject
from foliot.wire.shape import Shape
from foliot.wire.usage import Sum

RunStatus = Literal[
    "ready", "waiting", "running", "succeeded", "failed", "timed_out", "interrupted", "cancelled", "skipped"
]
Trigger = Literal["schedule", "manual", "dependency", "retry", "backfill", "import", "webhook"]
AttemptStatus = Literal["running", "succeeded", "failed", "timed_out", "lost", "cancelled"]


class RunErrorOut(Shape):
    code: str = Field(description="Stable; programs may rely on it.", examples=["worker_lost"])
    message: str
    traceback: str | None = Field(
        default=None, description="Of a Python function that raised, without secrets."
    )
    fingerprint: str = Field(
        default="",
        description="Equal for the same error: numbers and ids in its message do not count. `error:` finds it.",
        examples=["timeout:9f86d081884c7d65"],
    )


class AttemptOut(Shape):
    """One attempt by one worker."""

    number: int = Field(description="From 1 on.", examples=[1])
    status: AttemptStatus = Field(
        description="`lost`: its worker fell silent and may or may not have finished."
    )
    worker: Id = Field(description="The worker that ran it.")
    worker_name: str | None = Field(
        default=None, description="The name of that worker.", examples=["h1/4711"]
    )
    host: str | None = Field(default=None, description="The host that it ran on.", examples=["h1"])
    fence: int = Field(description="Rises with each attempt; a report under an older one is refused.")
    started_at: Instant = Field(description="When the worker claimed it.")
    finished_at: Instant | None = Field(description="Null while it is under way.")
    duration_ms: int | None
    error: RunErrorOut | None
    external_id: str | None = Field(
        default=None,
        description="The id at Celery, RQ or BullMQ, if it was handed over.",
    )
    revision: int | None = Field(
        default=None, description="The revision of the job that it ran: `GET /jobs/{id}/revisions`."
    )
    input: Any = Field(
        default=None,
        description="What it worked on: the payload of that revision, overlaid by the run's own input.",
    )


class AttemptsOut(Shape):
    items: list[AttemptOut] = Field(description="Oldest first.")


class NextAttemptOut(Shape):
    """The next attempt of a run, and its reason."""

    number: int = Field(examples=[2])
    at: Instant = Field(description="Not before then.")
    why: str = Field(examples=["Attempt 1 failed: TimeoutError: the server did not come up."])


class ProgressOut(Shape):
    """The progress that the work reports."""

    done: float
    total: float
    share: float = Field(description="From 0 to 1.")
    note: str
    at: Instant


class RunOut(Shape):
    id: Id
    job_id: Id
    job_name: str | None = Field(description="The current name of its job.", examples=["daily sync"])
    number: int = Field(description="Counts the runs of its job; there may be gaps.", examples=[12])
    occurrence: str = Field(
        default="",
        description="A name that follows from the job, the number and the repetitions so far.",
        examples=["sched-01a31938-n12-rc0"],
    )
    status: RunStatus = Field(
        description="`ready`: a worker may take it, retries wait here too. `waiting`: it may not start yet; explain says why."
    )
    skip_reason: str | None = Field(description="The reason of a skip.", examples=["overlap"])
    note: str | None = Field(
        description="Details beside the status: the reason of a cancel, the run that blocked it."
    )
    trigger: Trigger = Field(description="The cause of the run.")
    triggered_by: str | None = Field(
        description="The principal that requested it; null for runs of the schedule."
    )
    triggered_by_name: str | None = Field(
        default=None,
        description="The name of that principal; null in lists.",
        examples=["ada"],
    )
    retry_of: Id | None = Field(description="The run that it repeats.")
    upstream_run_id: Id | None = Field(description="The run of another job whose end triggered it.")
    planned_for: Instant = Field(description="The planned time; for a manual run, the time of the request.")
    planned_local: WallTime
    planned_until: Instant | None = Field(description="The last planned time of a gap record.")
    count: int | None = Field(
        description="How many planned times a gap record stands for; null with planned_until: beyond counting."
    )
    created_at: Instant = Field(description="When it was recorded.")
    started_at: Instant | None = Field(description="When its first attempt began.")
    finished_at: Instant | None
    duration_ms: int | None = Field(
        description="From its first start to its end, waits between attempts included."
    )
    lag_ms: int | None = Field(description="How long after its planned time it started.")
    cancel_requested_at: Instant | None = Field(description="When its worker was asked to stop.")
    attempt_count: int
    attempts: list[AttemptOut] | None = Field(
        default=None, description="The newest ten, oldest first; null in lists."
    )
    revision: int | None = Field(
        default=None,
        description="The revision of the job that its newest attempt ran; null before one starts.",
    )
    input: Any = Field(
        description="The job's payload, overlaid by the input given for this run. The payload is that of `revision`; before the next "
        "attempt starts, the current one. Each attempt has its own."
    )
    output: Any = Field(description="The result of its handler.")
    error: RunErrorOut | None
    worker: Id | None = Field(description="The worker that runs it, or ran it last.")
    worker_name: str | None = Field(
        default=None, description="The name of that worker; null in lists.", examples=["h1/4711"]
    )
    host: str | None = Field(
        default=None, description="The host that it runs on, or ran on last; null in lists.", examples=["h1"]
    )
    next_attempt: NextAttemptOut | None = Field(
        default=None, description="The next attempt, if there is one; null in lists."
    )
    artifacts: list[ArtifactOut] | None = Field(
        default=None, description="Its files, in order; null in lists."
    )
    progress: ProgressOut | None = Field(
        default=None, description="While it runs and reports progress; at most a second old."
    )
    usage: dict[str, Sum] | None = Field(
        default=None,
        description="What its attempts used, by unit, as reported when each ended; null in lists.",
        examples=[{"tokens": "1200", "usd": "0.0123"}],
    )


class RecentRunOut(Shape):
    id: Id
    number: int
    status: RunStatus
    skip_reason: str | None
    planned_for: Instant
    count: int | None = Field(description="How many planned times a gap record stands for.")


class RecentRunsOut(Shape):
    job_id: Id
    runs: list[RecentRunOut] = Field(description="Newest first.")


class RecentOut(Shape):
    items: list[RecentRunsOut] = Field(description="One for each job that has records.")


class CancelIn(Shape):
    reason: str | None = Field(default=None, min_length=1, max_length=1_000, examples=["wrong month"])
    force: bool = Field(
        default=False,
        description="Take it from its worker at once. What the worker still does is no longer heard of, and the next run may"
        " start beside it.",
    )


class RetryIn(Shape):
    input: JsonObject | None = Field(
        default=None, description="Merged into the input of the repeated run, key by key."
    )
    override: bool = Field(default=False, description="Run even while a freeze holds the job.")


class RunBucketOut(Shape):
    """Runs that were planned for one stretch of time."""

    at: Instant = Field(description="Its start.")
    succeeded: int = 0
    failed: int = Field(default=0, description="Failed, timed out or interrupted.")
    skipped: int = 0
    cancelled: int = 0
    open: int = Field(default=0, description="Not ended yet.")


class ErrorGroupOut(Shape):
    """Runs that ended with the same error."""

    fingerprint: str = Field(examples=["timeout:9f86d081884c7d65"])
    code: str
    message: str = Field(description="Of the newest.")
    runs: int
    jobs: int = Field(description="How many jobs they belong to.")
    first_at: Instant = Field(description="The earliest planned time among them.")
    last_at: Instant
    run_id: Id = Field(description="The newest.")
    job_id: Id
    job_name: str | None


class RunSummaryOut(Shape):
    """Counts of the runs that a filter finds, over time and by error."""

    since: Instant = Field(description="The start of the first bucket.")
    until: Instant
    bucket_seconds: int
    buckets: list[RunBucketOut] = Field(description="Oldest first; empty ones are left out.")
    runs: int = Field(description="Records that the filter finds among those read.")
    by_status: dict[str, int]
    errors: list[ErrorGroupOut] = Field(description="The most frequent first; at most fifty.")
    complete: bool = Field(
        description="False: the newest 5,000 records were read and there are older ones. Narrow the filter by `until` to count those."
    )
    counted_since: Instant | None = Field(description="If not complete: the oldest record that was read.")


class ArtifactOut(Shape):
    name: str = Field(examples=["report.pdf"])
    media_type: str = Field(examples=["application/pdf"])
    size: int = Field(description="In bytes.")
    sha256: str = Field(description="Of its content, in hexadecimal; also its ETag.")
    attempt: int = Field(description="The attempt that stored it.")
    created_at: Instant


class ArtifactsOut(Shape):
    items: list[ArtifactOut] = Field(description="In the order of storage.")


class LogLineOut(Shape):
    seq: int = Field(description="Its number within the run.")
    attempt: int
    at: Instant
    stream: Literal["log", "stdout", "stderr", "system"]
    text: str


class LogsOut(Shape):
    items: list[LogLineOut]
    next_cursor: str | None = Field(
        description="Send it as `cursor` for the next page; null at the end. To look again later, send the last `seq`."
    )
    truncated: bool = Field(description="The run wrote more than is stored.")


class LogEndOut(Shape):
    """The data of the last event of a stream, `end`."""

    status: RunStatus
    truncated: bool
