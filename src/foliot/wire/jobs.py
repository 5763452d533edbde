"""Jobs on the wire. JobFields has the fields that a person sets, with their defaults; JobOut adds those of the server."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Discriminator, Field, StringConstraints, Tag

from foliot.wire.durations import Duration
from foliot.wire.instants import Id, Instant, TimeOfDay
from foliot.wire.schedules import PlannedOut, ScheduleIn, ScheduleOut
from foliot.wire.shape import LOWER_WORD, ONE_LINE, TRIMMED, Shape, described, tag
from foliot.wire.usage import BudgetIn

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEK: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
JobStatus = Literal["pending", "active", "paused", "disabled", "completed", "failed", "expired", "archived"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=ONE_LINE)]
Word = Annotated[str, StringConstraints(pattern=LOWER_WORD)]
TypeName = Annotated[
    str,
    StringConstraints(
        pattern=described(
            r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$",
            "A type begins with a letter and has only letters, digits and _ . -, at most 64.",
        )
    ),
]
TagText = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=TRIMMED)]
HostName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=TRIMMED)]
Recipient = Annotated[
    str,
    StringConstraints(
        max_length=320,
        pattern=described(
            r'^([^\s@<>,;:"()\[\]\\]+@[^\s@<>,;:"()\[\]\\]+|\+?[0-9]{6,15})$',
            "A recipient is a mail address, or a phone number of 6 to 15 digits.",
        ),
    ),
]
JsonObject = dict[str, Any]


class Retry(Shape):
    max: int = Field(default=3, ge=0, le=1000, description="Retries after the first attempt.")
    strategy: Literal["none", "fixed", "exponential", "list", "interval_exponential"] = "list"
    delays: list[Duration] = Field(
        default=[timedelta(minutes=5), timedelta(minutes=15), timedelta(minutes=30)], max_length=1000
    )
    base: Duration = timedelta(minutes=1)
    cap: Duration | None = None
    jitter: float = Field(default=0.0, ge=0, le=1)
    past_next: bool = Field(
        default=False, description="Whether a retry may start after the job's next planned time."
    )


class Window(Shape):
    """When a job may start, on its own wall clock; may cross midnight."""

    start: TimeOfDay
    end: TimeOfDay
    days: list[Weekday] = Field(default=[*WEEK], min_length=1, max_length=7)
    otherwise: Literal["defer", "skip"] = "defer"


class Breaker(Shape):
    after: int = Field(default=5, ge=1, le=1_000_000, description="Failed runs in a row.")
    action: Literal["pause", "fail", "none"] = "pause"


class Retention(Shape):
    keep: Duration = timedelta(days=90)
    keep_last: int = Field(default=100, ge=1, le=1_000_000)
    mode: Literal["all", "any"] = "all"


class Notify(Shape):
    """Who hears of the job's failures, recoveries, stops and missed times. Overrides the notification rules."""

    email: bool = Field(default=True, description="The workspace's email channels.")
    slack: bool = Field(default=False, description="Its Slack channels.")
    whatsapp: bool = Field(default=False, description="Its WhatsApp channels.")
    recipients: list[Recipient] = Field(
        default=[],
        max_length=50,
        description="Mail addresses and phone numbers, instead of those of the channels.",
    )


class Dependency(Shape):
    job: Id
    on: Literal["success", "failure", "any"] = "success"
    mode: Literal["trigger", "gate"] = "trigger"
    delay: Duration = timedelta(0)
    max_age: Duration | None = None


class HostTarget(Shape):
    """It runs on this host, and nowhere else."""

    host: HostName


class ServerTarget(Shape):
    """It runs on whichever host has this server instance when the run starts."""

    server: HostName


def _which_target(value: Any) -> str | None:
    for kind in ("host", "server"):
        if (kind in value) if isinstance(value, dict) else hasattr(value, kind):
            return tag(kind)
    return None


Target = Annotated[
    Annotated[HostTarget, Tag(tag("host"))] | Annotated[ServerTarget, Tag(tag("server"))],
    Discriminator(
        _which_target,
        custom_error_type="target",
        custom_error_message="A target is an object with a host or a server, by name.",
    ),
]


class CliFlag(NamedTuple):
    """The flag of a field, if it is not the field's name."""

    name: str


class JobFields(Shape):
    """The one declaration of the fields that a person sets.

    `./dev format` makes the keywords of the client and the flags of the command line from the scalar fields; the mapping to the
    domain follows the names. A new field needs its twin in `domain.definition`, and nothing else here.
    """

    name: Name
    description: str = Field(default="", max_length=10_000, description="The purpose of the job.")
    type: TypeName = Field(description="The handler that does the work.", examples=["http", "python"])
    config: JsonObject = Field(default={}, examples=[{"url": "https://example.test/hook"}])
    payload: JsonObject = Field(default={}, description="The input of every run.")
    start_at: Instant | None = Field(default=None, description="No planned time lies before this instant.")
    end_at: Instant | None = Field(default=None, description="No planned time lies after this instant.")
    max_runs: int | None = Field(
        default=None, ge=1, le=2_000_000_000, description="The job is completed after this many runs."
    )
    window: Window | None = None
    calendars: list[Id] = Field(default=[], max_length=100)
    depends_on: list[Dependency] = Field(default=[], max_length=100)
    depends_when: Literal["all", "any"] = Field(
        default="all", description="Whether all upstream jobs must have run, or any of them."
    )
    retry: Retry = Retry()
    overlap: Literal["skip", "queue", "queue_one", "cancel_running", "concurrent"] = Field(
        default="skip", description="What happens at a planned time while another run is live."
    )
    max_queued: int = Field(
        default=100, ge=1, le=100_000, description="With overlap queue: the most runs that may wait."
    )
    misfire: Literal["latest", "all", "skip"] = Field(
        default="latest", description="Which late planned times still run."
    )
    grace: Duration = Field(default=timedelta(seconds=60), description="Older planned times are late.")
    max_catch_up: int = Field(
        default=10, ge=1, le=1000, description="With misfire all: the most late times that run."
    )
    breaker: Breaker = Breaker()
    timeout: Duration = Field(
        default=timedelta(minutes=10), description="How long an attempt may take, such as 10m."
    )
    retry_timeouts: bool = Field(
        default=True, description="Whether an attempt that timed out is retried like another failure."
    )
    start_deadline: Duration | None = Field(
        default=None, description="How long after its due time a run may still start."
    )
    on_lost: Literal["repeat", "fail"] = Field(
        default="repeat", description="What happens to a run whose worker is gone."
    )
    priority: int = Field(default=0, ge=-1000, le=1000, description="Smaller goes first.")
    queue: Word = Field(default="default", description="The queue whose workers take the runs.")
    concurrency_key: str | None = Field(
        default=None, min_length=1, max_length=200, description="Runs with the same key share a limit."
    )
    target: Target | None = Field(
        default=None, description="Where it must run; without one, any worker that serves its queue."
    )
    read_only: Annotated[bool, CliFlag("--read-only/--mutating")] = Field(
        default=False, description="Whether runs change nothing: a host runs several such runs at once."
    )
    shadow: bool = Field(
        default=False,
        description="Whether planned times are only recorded, as skipped with the reason shadow: to compare with another scheduler.",
    )
    retention: Retention = Retention()
    tags: list[TagText] = Field(default=[], max_length=50)
    external_ref: JsonObject | None = None
    budgets: list[BudgetIn] = Field(
        default=[],
        max_length=10,
        description="How much its runs may use, by the usage that they report.",
        examples=[[{"unit": "usd", "amount": "25", "period": "month"}]],
    )
    notify: Notify | None = Field(
        default=None,
        description="Null: the notification rules decide. All kinds false: nobody hears of it.",
    )


class JobIn(JobFields):
    schedule: ScheduleIn
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=320,
        description="Name, id or address of the member who owns the job; `me` is the caller. Left out, a new job is the caller's, and"
        " others keep their owner. An agent owns its own jobs only.",
    )
    enabled: bool = Field(
        default=True,
        description="False creates the job disabled. In an edit, false disables it and true resumes it if it is disabled;"
        " left out, its status stays.",
    )


class JobHead(Shape):
    """The fields that a reader needs first."""

    id: Id
    status: JobStatus
    next_run_at: Instant | None


class JobDefinition(JobFields):
    """The definition, as answers show it."""

    schedule: ScheduleOut
    owner: Id | None
    inherited: dict[str, Literal["workspace", "installation"]] = Field(
        default={},
        description="The fields among retry, timeout and retention that the job leaves out, and whose default each has: `GET /defaults`."
        " Sent back in a PUT, these fields stay inherited.",
        examples=[{"retry": "workspace", "timeout": "installation", "retention": "installation"}],
    )


class JobOut(JobDefinition, JobHead):
    owner_name: str | None = Field(
        description="Name of the owner; null without one, and for an administrator of the installation."
    )
    enabled: bool = Field(description="False while its status is disabled.")
    status_reason: str | None
    status_at: Instant
    paused_until: Instant | None
    managed_by: str | None = Field(
        default=None, description="The app in whose code this job is written; edits of it need force."
    )
    fire_count: int = Field(description="Runs made by the schedule.")
    run_count: int = Field(description="Runs that ended after at least one attempt.")
    success_count: int
    failure_count: int = Field(description="Runs that failed for good.")
    skip_count: int
    schedule_error_count: int = Field(
        default=0, description="Planned times for which the scheduler could not make a run."
    )
    failed_attempt_count: int = Field(
        default=0, description="Attempts that failed, timed out or were lost, those with a retry included."
    )
    consecutive_failures: int
    last_fire_at: Instant | None = Field(description="When the schedule made its last run.")
    last_fire_status: Literal["queued", "skipped", "scheduler_failed"] | None = Field(
        default=None,
        description="What became of the planned time recorded last. `queued`: a run was made; `last_run_status` says how runs end.",
    )
    last_fire_run_id: Id | None = Field(default=None, description="The record of that planned time.")
    last_run_at: Instant | None
    last_run_id: Id | None = Field(description="The run that ended last after at least one attempt.")
    last_run_status: str | None
    last_error: str | None
    revision: int
    created_by: str
    created_at: Instant
    updated_at: Instant
    warnings: list[str] = Field(
        default=[],
        description="What keeps its runs from starting, and what is often a mistake; only in the answer to a write, and on request.",
    )


class RunIn(Shape):
    input: JsonObject | None = Field(default=None, description="Merged into the job's payload, key by key.")
    override: bool = Field(default=False, description="Run even while a freeze holds the job.")


class PauseIn(Shape):
    reason: str | None = Field(default=None, min_length=1, max_length=1_000)
    until: Instant | None = None
    drop_queued: bool = Field(
        default=False,
        description="Skip its scheduled runs that no worker has yet. Otherwise they wait for the resume.",
    )


class ResumeIn(Shape):
    catch_up: bool = Field(default=False, description="Run missed times, as `misfire` says.")


class DisableIn(Shape):
    reason: str | None = Field(default=None, min_length=1, max_length=1_000)


class SkipNextIn(Shape):
    n: int = Field(default=1, ge=1, le=1_000, description="How many planned times to skip.")
    until: Instant | None = Field(default=None, description="All up to this instant, instead of `n`.")
    reason: str = Field(default="Skipped by hand.", min_length=1, max_length=1_000)


class SkipNextOut(Shape):
    dry_run: bool = Field(default=False, description="Whether this is a dry run.")
    count: int
    skipped: list[PlannedOut] = Field(description="The planned times that will be skipped; the first 100.")
    next_run_at: Instant | None = Field(description="The first planned time that will run.")
    reason: str


class BackfillIn(Shape):
    """There is no `override`: runs of a backfill wait for the end of a freeze."""

    start: Instant = Field(alias="from", description="Planned times from here on.")
    to: Instant = Field(description="Up to here, not included.")
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    max: int = Field(default=1_000, ge=1, le=10_000, description="Refused if it would create more.")
    skipped: bool = Field(default=False, description="Also times that are recorded as skipped.")
    dry_run: bool = Field(default=False, description="Only count them.")


class BackfillOut(Shape):
    dry_run: bool
    count: int
    first: Instant | None
    last: Instant | None
    run_ids: list[Id]


class FieldChange(Shape):
    path: str = Field(description="JSON pointer into the job.", examples=["/schedule/expr"])
    before: Any
    after: Any


class RevisionOut(Shape):
    revision: int
    at: Instant = Field(description="In force from here until the next one.")
    actor: str
    note: str | None
    changes: list[FieldChange] = Field(description="Compared with the revision before; empty for the first.")
    definition: JobDefinition


class RevertIn(Shape):
    revision: int = Field(ge=1, le=2**31 - 1)
    note: str | None = Field(default=None, min_length=1, max_length=1_000)
