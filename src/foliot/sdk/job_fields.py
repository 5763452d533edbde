# Made from wire/jobs.py by ./dev format; edit it there.
"""The scalar fields of a job: keywords of the client and of `@app.job`, flags of `foliot jobs create` and `edit`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypedDict

DurationLike = timedelta | str
InstantLike = datetime | str


class JobField(NamedTuple):
    name: str
    type: type
    help: str
    choices: tuple[str, ...] = ()
    flag: str | None = None  # where it is not --name


class JobFieldKeywords(TypedDict, total=False):
    description: str
    start_at: InstantLike | None
    end_at: InstantLike | None
    max_runs: int | None
    depends_when: Literal["all", "any"]
    overlap: Literal["skip", "queue", "queue_one", "cancel_running", "concurrent"]
    max_queued: int
    misfire: Literal["latest", "all", "skip"]
    grace: DurationLike
    max_catch_up: int
    timeout: DurationLike
    retry_timeouts: bool
    start_deadline: DurationLike | None
    on_lost: Literal["repeat", "fail"]
    priority: int
    queue: str
    concurrency_key: str | None
    read_only: bool
    shadow: bool


JOB_FIELDS = (
    JobField("description", str, "The purpose of the job."),
    JobField("start_at", datetime, "No planned time lies before this instant."),
    JobField("end_at", datetime, "No planned time lies after this instant."),
    JobField("max_runs", int, "The job is completed after this many runs."),
    JobField(
        "depends_when",
        str,
        "Whether all upstream jobs must have run, or any of them.",
        choices=("all", "any"),
    ),
    JobField(
        "overlap",
        str,
        "What happens at a planned time while another run is live.",
        choices=("skip", "queue", "queue_one", "cancel_running", "concurrent"),
    ),
    JobField("max_queued", int, "With overlap queue: the most runs that may wait."),
    JobField("misfire", str, "Which late planned times still run.", choices=("latest", "all", "skip")),
    JobField("grace", timedelta, "Older planned times are late."),
    JobField("max_catch_up", int, "With misfire all: the most late times that run."),
    JobField("timeout", timedelta, "How long an attempt may take, such as 10m."),
    JobField("retry_timeouts", bool, "Whether an attempt that timed out is retried like another failure."),
    JobField("start_deadline", timedelta, "How long after its due time a run may still start."),
    JobField("on_lost", str, "What happens to a run whose worker is gone.", choices=("repeat", "fail")),
    JobField("priority", int, "Smaller goes first."),
    JobField("queue", str, "The queue whose workers take the runs."),
    JobField("concurrency_key", str, "Runs with the same key share a limit."),
    JobField(
        "read_only",
        bool,
        "Whether runs change nothing: a host runs several such runs at once.",
        flag="--read-only/--mutating",
    ),
    JobField(
        "shadow",
        bool,
        "Whether planned times are only recorded, as skipped with the reason shadow: to compare with another scheduler.",
    ),
)
