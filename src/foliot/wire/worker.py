"""The worker protocol: register, claim, heartbeat, stops, log, report, leave."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from foliot.wire.durations import Duration
from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import HostName, JsonObject, TypeName
from foliot.wire.runs import Trigger
from foliot.wire.shape import Shape, described
from foliot.wire.usage import UsageAmounts

LONGEST_WAIT = timedelta(seconds=30)
MOST_REPORTS = 500
MOST_LINES = 1_000  # in one chunk
MOST_HELD = 10_000
MOST_CONTENT = 64 << 20  # characters of base64; the installation's own bound is lower
LabelName = Annotated[
    str, StringConstraints(min_length=1, max_length=63, pattern=described(r"^\S+$", "A label has no blanks."))
]
LabelText = Annotated[str, StringConstraints(max_length=200)]
Labels = Annotated[dict[LabelName, LabelText], Field(max_length=50)]
Queue = Annotated[
    str,
    StringConstraints(
        pattern=described(
            r"^(\*|[a-z][a-z0-9_.-]{0,63})$",
            "A queue begins with a lower-case letter and has only lower-case letters, digits and _ . -, at most 64; "
            "* is all of them.",
        )
    ),
]
Permits = Annotated[int, Field(ge=1, le=1_000)]
Fence = Annotated[int, Field(ge=1, le=2_147_483_647)]
MOST_TYPES = 200
LONGEST_DESCRIPTION = 2_000
Types = Annotated[list[TypeName], Field(max_length=MOST_TYPES)]


class HostIn(Shape):
    name: HostName
    labels: Labels | None = Field(default=None, description="null leaves them as they are.")
    instances: list[HostName] = Field(
        default=[], max_length=500, description="Server instances that it has; one known elsewhere has moved."
    )


class DescribedType(Shape):
    """A worker's description of a job type that the server may not have."""

    name: TypeName
    description: str = Field(default="", max_length=LONGEST_DESCRIPTION)
    config_schema: JsonObject = Field(
        description="JSON Schema that a config must fit; up to 32 KiB, with no reference out of it or to itself."
    )


class RegisterIn(Shape):
    name: HostName = Field(description="The name of the process, for people.")
    types: Types = Field(description="The job types that it runs.")
    capacity: Permits = Field(description="How many runs it takes at the same time.")
    version: str = Field(default="", max_length=50)
    queues: list[Queue] = Field(
        default=["*"],
        min_length=1,
        max_length=50,
        description="The queues that it serves; a host serves none.",
    )
    host: HostIn | None = Field(default=None, description="The host that it works for.")
    described: list[DescribedType] = Field(
        default=[],
        max_length=MOST_TYPES,
        description="What configs of these types look like, for jobs of this workspace to be checked when they are written. Of types"
        " that the server has itself, its own word counts.",
    )


class RegisterOut(Shape):
    worker_id: Id
    lease: Duration = Field(description="How long it may be silent before its runs go to other workers.")
    host_id: Id | None
    artifact_bytes: int = Field(
        default=MOST_CONTENT // 4 * 3,
        description="How large one artifact may be here; what is larger need not be sent.",
    )


class RunHeld(Shape):
    run_id: Id
    fence: Fence


class HeartbeatIn(Shape):
    worker_id: Id
    draining: bool = False
    working_on: list[RunHeld] = Field(
        default=[],
        max_length=MOST_HELD,
        description="Every run it has, those it has still to report included. What it holds beside these goes to others.",
    )


class HeartbeatOut(Shape):
    alive: bool = Field(description="False: the server considers it lost. Stop all work and register again.")
    cancels: list[RunHeld] = Field(description="Runs to stop and to report as cancelled.")
    gone: list[RunHeld] = Field(description="Runs that it no longer holds: stop them.")


class StopsIn(Shape):
    worker_id: Id
    working_on: list[RunHeld] = Field(default=[], max_length=MOST_HELD, description="Runs that it works on.")
    stopping: list[RunHeld] = Field(
        default=[], max_length=MOST_HELD, description="Stops that it has received already: not sent again."
    )
    wait: Duration = Field(
        default=timedelta(seconds=20), description="How long to wait for one, 30 seconds at most."
    )


class StopsOut(Shape):
    cancels: list[RunHeld] = Field(description="Runs to stop and to report as cancelled.")
    gone: list[RunHeld] = Field(description="Runs that it no longer holds: stop them.")


class ClaimIn(Shape):
    worker_id: Id
    types: Types
    permits: Permits = 1
    wait: Duration = Field(
        default=timedelta(seconds=20), description="How long to wait for work, 30 seconds at most."
    )


class WorkOut(Shape):
    run_id: Id
    job_id: Id
    workspace_id: Id
    job: str
    type: str
    fence: int
    attempt: int
    trigger: Trigger
    planned_for: Instant
    deadline_at: Instant
    left: Duration = Field(description="The time that is left for the attempt.")
    config: JsonObject
    input: JsonObject
    workspace: str = Field(default="", description="The slug of its workspace.")
    number: int = Field(default=0, description="Of the run, within its job.")
    triggered_by: str | None = Field(default=None, description="Who asked for the run.")
    upstream: JsonObject | None = Field(
        default=None, description="The run whose end triggered it: job_id, run_id, status, output."
    )
    masks: list[str] = Field(
        description="Values of secrets in the configuration, not to be shown in what is sent back."
    )


class ClaimOut(Shape):
    items: list[WorkOut]


class LineIn(Shape):
    at: Instant
    stream: Literal["log", "stdout", "stderr", "system"] = "log"
    text: str = Field(max_length=9_000)


class ChunkIn(Shape):
    run_id: Id
    fence: Fence
    attempt: Annotated[int, Field(ge=1, le=2_147_483_647)]
    first: int = Field(
        ge=1, le=1_000_000_000, description="The number of its first line among all of this attempt."
    )
    lines: list[LineIn] = Field(max_length=MOST_LINES)


class ProgressIn(Shape):
    """The progress of an attempt. Only the last report is stored, and only while it runs."""

    run_id: Id
    fence: Fence
    done: float
    total: float
    note: str = Field(default="", max_length=500)
    at: Instant


class LogIn(Shape):
    worker_id: Id
    chunks: list[ChunkIn] = Field(default=[], max_length=500)
    progress: list[ProgressIn] = Field(default=[], max_length=MOST_REPORTS)


class LogTaken(Shape):
    taken: int = Field(
        description="Chunks that were stored; those of runs that it does not hold are dropped."
    )


class ArtifactIn(Shape):
    """A file of a running run; it replaces a file of the same name."""

    worker_id: Id
    run_id: Id
    fence: Fence
    attempt: Annotated[int, Field(ge=1, le=2_147_483_647)]
    name: str = Field(min_length=1, max_length=200)
    media_type: str = Field(default="application/octet-stream", max_length=250)
    content: str = Field(max_length=MOST_CONTENT, description="Base64.", examples=["aGVsbG8="])


LONGEST_TRACEBACK = 8_000  # characters


class ReportError(Shape):
    code: str = Field(min_length=1, max_length=100)
    message: str = Field(max_length=4_000)
    traceback: str | None = Field(default=None, max_length=LONGEST_TRACEBACK)


class ReportItem(Shape):
    run_id: Id
    fence: Fence
    outcome: Literal["succeeded", "failed", "timed_out", "cancelled", "handed_back", "retry", "skipped"]
    error: ReportError | None = Field(default=None, description="Of a failure.")
    permanent: bool = Field(default=False, description="Of a failure: a retry would not help.")
    after: Duration | None = Field(
        default=None, description="Of retry: when to be called again. Of a failure: not before."
    )
    note: str = Field(default="", max_length=4_000, description="Of skipped: why.")
    output: Any = None
    usage: UsageAmounts = Field(
        default={},
        description="What the attempt used, by unit.",
        examples=[{"tokens": "1200", "usd": "0.0123"}],
    )


class ReportIn(Shape):
    worker_id: Id
    reports: list[ReportItem] = Field(max_length=MOST_REPORTS)


class ReportTaken(Shape):
    run_id: Id
    fence: int
    status: Literal[200, 409]
    code: Literal["lease_lost"] | None = Field(
        description="Why it was refused: another worker holds the run."
    )


class ReportOut(Shape):
    items: list[ReportTaken] = Field(description="One for each report, in their order.")


class LeaveIn(Shape):
    worker_id: Id
