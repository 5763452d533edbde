"""Workers, queues, job types, hosts and limits on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import HostName
from foliot.wire.shape import Shape, hide_defaults
from foliot.wire.worker import Labels


class WorkerOut(Shape):
    id: Id
    name: str
    status: Literal["alive", "draining", "lost"]
    queues: list[str]
    host: str | None = Field(description="The host that it works for; such a worker serves no queue.")
    types: list[str]
    capacity: int = Field(description="How many runs it takes at the same time.")
    running: int = Field(description="Runs of this workspace that it has now.")
    since: Instant
    last_heartbeat_at: Instant
    version: str


class WorkersOut(Shape):
    items: list[WorkerOut]


class LeaseOut(Shape):
    """A running attempt and the worker that holds it."""

    run_id: Id
    job_id: Id
    job: str = Field(description="Name of the job.")
    attempt: int
    fence: int
    worker: Id
    worker_name: str | None
    host: str | None
    since: Instant = Field(description="When the worker took it.")
    expires_at: Instant | None = Field(
        description="Until when its worker may be silent; each heartbeat moves it. null: the worker is gone, and the run is about to be given up."
    )
    deadline_at: Instant = Field(description="When the attempt times out.")
    overdue: bool = Field(description="Past its deadline, or its worker fell silent.")
    overdue_ms: int = Field(default=0, description="For how long; 0 while it is in time.")


class LeasesOut(Shape):
    items: list[LeaseOut]


class QueueOut(Shape):
    name: str
    ready: int = Field(description="Runs that a worker may take now, or at the time of their retry.")
    waiting: int = Field(description="Runs that may not start yet: behind another, at a cap, in a freeze.")
    running: int
    oldest_ready_at: Instant | None = Field(
        description="Since when the run that has been ready for longest could have started."
    )
    workers: int = Field(description="Live workers that serve it.")
    warnings: list[str] = Field(description="Which runs no live worker could take.")


class QueuesOut(Shape):
    items: list[QueueOut]


class WorkspaceShareOut(Shape):
    """The open runs of one workspace."""

    workspace: Id
    slug: str
    name: str
    ready: int = Field(description="Runs that a worker could take now.")
    oldest_ready_at: Instant | None = Field(description="Since when the first of them waits.")
    running: int
    held: int = Field(description="Runs that wait for a limit of the workspace's own.")
    cap: int | None = Field(description="The limit of the whole workspace, if it has one.")


class CapacitySharesOut(Shape):
    items: list[WorkspaceShareOut] = Field(
        description="Workspaces with open runs, the longest wait first. Of all ready runs, 100,000 are counted."
    )


class JobTypeOut(Shape):
    name: str
    description: str | None = Field(description="null for a type that only workers elsewhere know.")
    config_schema: dict[str, Any] | None = Field(
        description="JSON Schema of `config`; null where none is known."
    )
    active: bool = Field(description="Whether a live worker does work of this type.")
    enabled: bool = Field(description="False where an administrator has switched it off for this workspace.")
    disabled_reason: str | None
    known_to: list[Literal["server", "workers"]]
    workers: int = Field(description="Live workers that know it.")


class JobTypeSwitch(Shape):
    enabled: bool
    reason: str = Field(default="", max_length=1_000, description="Why it is switched off.")


class JobTypesOut(Shape):
    items: list[JobTypeOut]


class InstanceOut(Shape):
    id: Id
    host_id: Id
    name: str
    labels: dict[str, str]
    created_at: Instant
    updated_at: Instant


class BoundJob(Shape):
    id: Id
    name: str


class HostOut(Shape):
    id: Id
    name: str
    status: Literal["online", "stale", "offline"] = Field(
        description="stale: silent for longer than its lease. offline: for minutes more, or it left in good order."
    )
    last_seen_at: Instant
    labels: dict[str, str]
    max_mutations: int = Field(description="Runs that change something, at once.")
    max_reads: int = Field(description="Runs of jobs with read_only, at once, beside those.")
    running: int
    types: list[str] = Field(
        default=[], description="Of jobs that it does, while it is there.", examples=[["command", "http"]]
    )
    instances: list[InstanceOut]
    jobs: list[BoundJob] | None = Field(
        default=None,
        description="Jobs that must run there, or on a server instance that it has; fifty at most, null in lists.",
    )
    version: str
    revision: int
    created_at: Instant
    updated_at: Instant


class HostChange(Shape):
    """Only what is to change. Labels are replaced as a whole."""

    model_config = ConfigDict(json_schema_extra=hide_defaults)

    labels: Labels = Field(default={})
    max_mutations: int = Field(default=1, ge=1, le=1_000)
    max_reads: int = Field(default=8, ge=0, le=1_000)


class InstanceIn(Shape):
    name: HostName
    labels: Labels = Field(default={})


class InstanceChange(Shape):
    """Only what is to change. Another `host_id` moves it there, and the runs that wait for it along."""

    host_id: Id | None = None
    labels: Labels | None = None


LONGEST_KEY = 200
ConcurrencyKey = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_KEY)]


class LimitIn(Shape):
    key: ConcurrencyKey | None = Field(
        default=None, description="The `concurrency_key` of the jobs it is for; null for the whole workspace."
    )
    cap: int = Field(ge=1, le=1_000_000, description="The most runs under way at once.")


class LimitOut(LimitIn):
    in_use: int = Field(description="Runs under way.")
    waiting: int = Field(description="Runs in line for it; counted up to 10,000.")
    dry_run: bool = Field(default=False, description="Whether this is a dry run.")


class LimitsOut(Shape):
    items: list[LimitOut]
