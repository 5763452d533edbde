"""What `@app.job(…)` takes, and the JSON of the API made from it. The server judges what only it can know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from foliot.sdk.app.errors import Misdefined
from foliot.sdk.job_fields import DurationLike, InstantLike, JobFieldKeywords

if TYPE_CHECKING:
    from foliot.sdk.app.job import Job

Json = Mapping[str, Any]
SCHEDULES = ("cron", "every", "at", "when", "schedule")
NOT_OF_THE_API = frozenset({*SCHEDULES, "timezone", "depends_on", "secrets"})


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
    """At most one of cron, every, at, when and schedule; with none the job runs when it is asked to.

    `schedule` is for what the others cannot say, as the API takes it. `depends_on` and `calendars` go by name.
    `secrets` says under which names the function finds which of the workspace's: {"token": "crm-token"}.
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


def check_options(options: JobOptions, where: str) -> None:
    """What can be told without a server."""
    unknown = options.keys() - JobOptions.__annotations__.keys()
    if unknown:
        raise Misdefined(f"{where} has no option {', '.join(sorted(unknown))}.")
    several = [name for name in SCHEDULES if name in options]
    if len(several) > 1:
        raise Misdefined(f"{where} has {' and '.join(several)}.", hint="A job has one schedule.")
    if "timezone" in options and "schedule" in options:
        raise Misdefined(f"{where} has timezone beside schedule.", hint="Put it into the schedule.")


def as_json(options: JobOptions) -> dict[str, Any]:
    """The fields of the API, durations and instants as text."""
    told = {name: _plain(value) for name, value in options.items() if name not in NOT_OF_THE_API}
    if isinstance(told.get("retry"), int):
        told["retry"] = {"max": told["retry"]}
    told["depends_on"] = [_edge(each) for each in options.get("depends_on", ())]
    return {**told, "schedule": _schedule(options)}


def _schedule(options: JobOptions) -> dict[str, Any]:
    match options:
        case {"cron": expr}:
            told: dict[str, Any] = {"kind": "cron", "expr": expr}
        case {"every": every}:
            told = {"kind": "interval", "every": _plain(every)}
        case {"at": at}:
            told = {"kind": "once", "at": _plain(at)}
        case {"when": words}:
            told = {"words": words}
        case {"schedule": schedule}:
            return {name: _plain(value) for name, value in schedule.items()}
        case _:
            told = {"kind": "manual"}
    return {**told, "timezone": options["timezone"]} if "timezone" in options else told


def _edge(upstream: Job[..., Any] | str | DependencyOptions) -> dict[str, Any]:
    if isinstance(upstream, str):
        return {"job": upstream}
    if isinstance(upstream, Mapping):
        return {name: _plain(value) for name, value in upstream.items()}
    return {"job": upstream.name}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        from foliot.wire.durations import write_duration  # it takes a while to load

        return write_duration(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
