"""Jobs and schedules in Python keywords, and the JSON of the API made from them. The server validates it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Required, TypedDict
from uuid import UUID

from foliot.sdk.errors import Invalid
from foliot.sdk.job_fields import DurationLike, JobFieldKeywords
from foliot.wire.jobs import (
    Breaker,
    Dependency,
    HostTarget,
    JobIn,
    JobStatus,
    Notify,
    Retention,
    Retry,
    ServerTarget,
    Window,
)
from foliot.wire.schedules import CronIn, IntervalIn, ManualIn, OnceIn, WordsIn
from foliot.wire.usage import BudgetIn

if TYPE_CHECKING:
    from foliot.wire.runs import RunStatus, Trigger

Object = Mapping[str, Any]
ScheduleLike = str | CronIn | IntervalIn | OnceIn | ManualIn | WordsIn | Object


class JobKeywords(JobFieldKeywords, total=False):
    """The fields of JobIn. Durations may be text or timedelta, instants text or datetime, shapes may be plain dicts."""

    name: Required[str]
    type: Required[str]
    schedule: Required[ScheduleLike]
    enabled: bool
    owner: UUID | str | None
    config: Object
    payload: Object
    window: Window | Object | None
    calendars: Sequence[UUID | str]
    depends_on: Sequence[Dependency | Object]
    retry: Retry | Object
    breaker: Breaker | Object
    target: HostTarget | ServerTarget | Object | None
    retention: Retention | Object
    tags: Sequence[str]
    external_ref: Object | None
    notify: Notify | Object | None
    budgets: Sequence[BudgetIn | Object]


class DefaultKeywords(TypedDict, total=False):
    """Defaults of the workspace for fields that a job leaves out; None gives one back to the installation."""

    retry: Retry | Object | None
    timeout: DurationLike | None
    retention: Retention | Object | None
    timezone: str | None


class JobFilters(TypedDict, total=False):
    """Filters of a job list. `q` is the filter language, such as "status:failed tag:billing"; the others are its terms."""

    q: str | None
    status: JobStatus | Sequence[JobStatus] | None
    tag: str | Sequence[str] | None
    type: str | Sequence[str] | None
    queue: str | Sequence[str] | None
    owner: str | Sequence[str] | None
    name: str | Sequence[str] | None
    since: str | Sequence[str] | None
    until: str | Sequence[str] | None


class RunFilters(TypedDict, total=False):
    """Filters of a run list, like JobFilters. `job` takes ids; queue, type and tag are those the job has now."""

    q: str | None
    status: RunStatus | Sequence[RunStatus] | None
    trigger: Trigger | Sequence[Trigger] | None
    skip_reason: str | Sequence[str] | None
    job: UUID | str | Sequence[UUID | str] | None
    worker: UUID | str | Sequence[UUID | str] | None
    queue: str | Sequence[str] | None
    type: str | Sequence[str] | None
    tag: str | Sequence[str] | None
    since: str | Sequence[str] | None
    until: str | Sequence[str] | None


def job_body(job: JobIn | Object | None, fields: Mapping[str, Any]) -> Any:
    if job is None:
        job = fields
    elif fields:
        raise Invalid(
            "Pass a job or keywords, not both.",
            code="invalid",
            hint=f"Put {', '.join(fields)} into the job, or pass only keywords.",
        )
    if isinstance(job, JobIn):
        return job
    return {**job, "schedule": schedule_body(job["schedule"])} if "schedule" in job else dict(job)


def schedule_body(schedule: ScheduleLike) -> Any:
    """Return the schedule; a string is words or cron."""
    return {"words": schedule} if isinstance(schedule, str) else schedule
