"""The keywords of `@app.job(…)`, and the JSON of the API made from them. The server validates the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from foliot.sdk.job_fields import DurationLike, InstantLike, JobFieldKeywords

if TYPE_CHECKING:
    from foliot.sdk.app.job import Job


class AppDefinitionError(Exception):
    """The definition of an app is not valid; `hint` is the remedy."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{message} {hint}" if hint else message)
        self.message = message
        self.hint = hint


Json = Mapping[str, Any]
SCHEDULES = ("cron", "every", "at", "when", "schedule")
NOT_API_FIELDS = frozenset({*SCHEDULES, "timezone", "depends_on", "secrets"})


class RetryOptions(TypedDict, total=False):
    max: int
    strategy: Literal["none", "fixed", "exponential", "list", "interval_exponential"]
    delays: Sequence[DurationLike]
    base: DurationLike
    cap: DurationLike | None
    jitter: float
    past_next: bool


class BreakerOptions(TypedDict, total=False):
    after: int
    action: Literal["pause", "fail", "none"]


class RetentionOptions(TypedDict, total=False):
    keep: DurationLike
    keep_last: int
    mode: Literal["all", "any"]


class WindowOptions(TypedDict, total=False):
    start: str
    end: str
    days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]
    otherwise: Literal["defer", "skip"]


class DependencyOptions(TypedDict, total=False):
    job: str
    on: Literal["success", "failure", "any"]
    mode: Literal["trigger", "gate"]
    delay: DurationLike
    max_age: DurationLike | None


class JobOptions(JobFieldKeywords, total=False):
    """At most one of cron, every, at, when and schedule; without any the job is manual.

    `schedule` is any schedule of the API as JSON. `depends_on` and `calendars` take names.
    `secrets` maps names in `ctx.secrets` to secrets of the workspace: {"token": "crm-token"}.
    """

    name: str
    cron: str
    every: DurationLike
    at: InstantLike
    when: str
    schedule: Json
    timezone: str
    payload: Json
    retry: RetryOptions | int
    tags: Sequence[str]
    target: Mapping[Literal["host", "server"], str]
    window: WindowOptions
    calendars: Sequence[str]
    depends_on: Sequence[Job[..., Any] | str | DependencyOptions]
    breaker: BreakerOptions
    retention: RetentionOptions
    secrets: Mapping[str, str]
    enabled: bool
    owner: str


def check_options(options: JobOptions, where: str) -> None:
    """Check what does not need a server."""
    unknown = options.keys() - JobOptions.__annotations__.keys()
    if unknown:
        raise AppDefinitionError(f"{where} has no option {', '.join(sorted(unknown))}.")
    several = [name for name in SCHEDULES if name in options]
    if len(several) > 1:
        raise AppDefinitionError(f"{where} has {' and '.join(several)}.", hint="A job has one schedule.")
    if "timezone" in options and "schedule" in options:
        raise AppDefinitionError(f"{where} has timezone beside schedule.", hint="Put it into the schedule.")


def as_json(options: JobOptions) -> dict[str, Any]:
    """Return the fields of the API, with durations and instants as text."""
    body = {name: _plain(value) for name, value in options.items() if name not in NOT_API_FIELDS}
    if isinstance(body.get("retry"), int):
        body["retry"] = {"max": body["retry"]}
    body["depends_on"] = [_edge(each) for each in options.get("depends_on", ())]
    return {**body, "schedule": _schedule(options)}


def _schedule(options: JobOptions) -> dict[str, Any]:
    match options:
        case {"cron": expr}:
            body: dict[str, Any] = {"kind": "cron", "expr": expr}
        case {"every": every}:
            body = {"kind": "interval", "every": _plain(every)}
        case {"at": at}:
            body = {"kind": "once", "at": _plain(at)}
        case {"when": words}:
            body = {"words": words}
        case {"schedule": schedule}:
            return {name: _plain(value) for name, value in schedule.items()}
        case _:
            body = {"kind": "manual"}
    return {**body, "timezone": options["timezone"]} if "timezone" in options else body


def _edge(upstream: Job[..., Any] | str | DependencyOptions) -> dict[str, Any]:
    if isinstance(upstream, str):
        return {"job": upstream}
    if isinstance(upstream, Mapping):
        return {name: _plain(value) for name, value in upstream.items()}
    return {"job": upstream.name}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        from foliot.wire.durations import write_duration  # slow to import

        return write_duration(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
