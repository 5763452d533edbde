"""Jobs, schedules and runs on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, assert_never, get_args, get_origin
from zlib import crc32

from foliot.domain.artifacts import Artifact
from foliot.domain.definition import Definition
from foliot.domain.dependencies import Edge
from foliot.domain.field_changes import differences
from foliot.domain.freeze import Freeze, FreezePolicy, freeze_at
from foliot.domain.lifecycle import JobStatus
from foliot.domain.policy import Breaker, NotifyPolicy, Retention, Retry
from foliot.domain.run import Progress, RunError, Target, TargetKind
from foliot.domain.schedule import (
    Cron,
    Interval,
    Manual,
    Once,
    PlannedTime,
    Schedule,
    Window,
    is_chained,
    load_zone,
)
from foliot.domain.schedule.describe import say
from foliot.domain.schedule.notes import dst_note
from foliot.services.jobs.job_search import StoredJob, UpcomingTimes
from foliot.services.jobs.revisions import RevisionChange
from foliot.services.runs.history import AttemptRecord, NextAttempt, RecentRun, RunRecord
from foliot.services.runs.run_control import SkippedTimes
from foliot.web.mapping.definitions import SAME_IN_DEFINITION, SAME_IN_SPEC
from foliot.web.mapping.usage import budget_out
from foliot.wire import jobs as wire
from foliot.wire.durations import write_duration
from foliot.wire.instants import write_instant
from foliot.wire.jobs import FieldChange, RevisionOut
from foliot.wire.runs import (
    ArtifactOut,
    AttemptOut,
    NextAttemptOut,
    ProgressOut,
    RunErrorOut,
    RunOut,
)
from foliot.wire.schedules import CronOut, IntervalOut, ManualOut, OnceOut, PlannedOut, ScheduleOut, TimesOut
from foliot.wire.shape import Shape

SHOWN_SKIPS = 100
SHARED = 4_096  # parts of answers that many jobs have alike; they are frozen


def definition_out(definition: Definition) -> wire.JobDefinition:
    return wire.JobDefinition(**_fields(definition))


def job_out(record: StoredJob, warnings: Sequence[str] = ()) -> wire.JobOut:
    return wire.JobOut(**_job_fields(record, _call, warnings))


def job_json(record: StoredJob) -> dict[str, Any]:
    """Return what `to_json` of pydantic-core writes as `job_out` would, without building and validating shapes."""
    fields = _job_fields(record, _dumped)
    for name in _DURATIONS:
        if fields[name] is not None:
            fields[name] = write_duration(fields[name])
    return fields


Show = Callable[[Callable[[Any], Shape], Any], Any]  # makes a part of an answer of a value


def _call(make: Callable[[Any], Shape], value: Any) -> Any:
    return make(value)


@lru_cache(SHARED)
def _dumped(make: Callable[[Any], Shape], value: Any) -> Any:
    return make(value).model_dump(mode="json")


def _is_duration(kind: Any) -> bool:
    return kind is timedelta or any(_is_duration(each) for each in get_args(kind))


_DURATIONS = tuple(
    name
    for name, field in wire.JobOut.model_fields.items()
    if _is_duration(field.annotation) and get_origin(field.annotation) is not list
)


# Fields of an answer that are columns of the same name and type.
_COLUMNS = tuple(
    name
    for name in StoredJob.__slots__
    if name in wire.JobOut.model_fields and name not in {"status", "last_fire_status", "last_run_status"}
)


def _job_fields(record: StoredJob, show: Show, warnings: Sequence[str] = ()) -> dict[str, Any]:
    return dict(
        **_fields(record.definition, show),
        **{name: getattr(record, name) for name in _COLUMNS},
        status=record.status.value,
        enabled=record.status is not JobStatus.DISABLED,
        managed_by=record.definition.managed_by,
        next_run_at=record.next_at,
        consecutive_failures=record.failures_in_a_row,
        last_fire_status=None if record.last_fire_status is None else record.last_fire_status.value,
        last_run_status=record.last_run_status and record.last_run_status.value,
        warnings=list(warnings),
    )


def revision_out(change: RevisionChange) -> RevisionOut:
    revision = change.revision
    definition = definition_out(revision.definition)
    changes = []
    if change.before is not None:
        before, after = (each.model_dump(mode="json") for each in (definition_out(change.before), definition))
        changes = [
            FieldChange(path=each.path, before=each.before, after=each.after)
            for each in differences(before, after)
        ]
    return RevisionOut.from_value(revision, changes=changes, definition=definition)


def etag(record: StoredJob) -> str:
    """Return the revision, for If-Match, and a checksum of the other fields of the JSON, for If-None-Match."""
    rest = [getattr(record, name) for name in StoredJob.__slots__ if name != "definition"]
    return f'"{record.revision}-{crc32(repr(rest).encode()):08x}"'


@lru_cache(SHARED)
def schedule_out(schedule: Schedule) -> ScheduleOut:
    zone, words = schedule.timezone, say(schedule, load_zone(schedule.timezone))
    match schedule:
        case Cron():
            return CronOut.from_value(
                schedule,
                kind="cron",
                day_match=schedule.day_match.value,
                gap=schedule.gap.value,
                overlap_time=schedule.overlap_time.value,
                timezone=zone,
                words=words,
            )
        case Interval():
            return IntervalOut(
                kind="interval",
                every=schedule.every,
                mode=schedule.mode.value,
                anchor=schedule.anchor,
                spread=schedule.spread,
                timezone=zone,
                words=words,
            )
        case Once():
            return OnceOut(kind="once", at=schedule.at, timezone=zone, words=words)
        case Manual():
            return ManualOut(kind="manual", timezone=zone, words=words)
        case _:
            assert_never(schedule)


def times_out(schedule: Schedule, times: Iterable[PlannedTime]) -> list[PlannedOut]:
    return [
        PlannedOut(
            planned_for=time.planned_for,
            planned_local=local_of(schedule, time),
            notes=list(notes_of(schedule, time)),
        )
        for time in times
    ]


def upcoming_out(upcoming: UpcomingTimes) -> TimesOut:
    """Return the next times of a job; those within a freeze say so, and those that will be skipped on request."""
    job = upcoming.job
    items = times_out(job.definition.spec.schedule, upcoming.times)
    for item, time in zip(items, upcoming.times, strict=True):
        if job.skip_next and time.planned_for <= (job.skip_until or upcoming.times[0].planned_for):
            item.notes.append(f"It will be skipped: {job.skip_next}")
        if (freeze := freeze_at(upcoming.freezes, time.due_at)) is not None:
            item.notes.append(freeze_note(freeze))
    return TimesOut(items=items, notes=list(upcoming.notes))


def freeze_note(freeze: Freeze) -> str:
    why = f" ({freeze.reason})" if freeze.reason else ""
    until = "until it is lifted" if freeze.end_at is None else f"until {write_instant(freeze.end_at)}"
    after = {
        FreezePolicy.SKIP: "times within it are skipped",
        FreezePolicy.LATEST: "times within it are held, and the newest of them runs at its end",
        FreezePolicy.ALL: f"times within it are held, and all run after its end, {freeze.per_minute} a minute",
    }[freeze.after]
    return f"A freeze{why} is in force {until}: {after}."


def skip_next_out(job: StoredJob, skipped: SkippedTimes, *, dry_run: bool) -> wire.SkipNextOut:
    return wire.SkipNextOut(
        dry_run=dry_run,
        count=len(skipped.times),
        skipped=times_out(job.definition.spec.schedule, skipped.times[:SHOWN_SKIPS]),
        next_run_at=None if skipped.following is None else skipped.following.planned_for,
        reason=skipped.reason,
    )


def recent_run_json(run: RecentRun) -> dict[str, Any]:
    """Return the fields of RecentRunOut without building the shape: a list of jobs shows a thousand of them."""
    return {
        "id": run.id,
        "number": run.number,
        "status": run.status,
        "skip_reason": run.skip_reason,
        "planned_for": run.planned_for,
        "count": run.count,
    }


def run_out(record: RunRecord) -> RunOut:
    attempts = record.attempts
    return RunOut.from_value(
        record,
        occurrence=f"sched-{record.job_id.hex[-8:]}-n{record.number}-rc{max(0, record.attempt_count - 1)}",
        status=record.status.value,
        skip_reason=record.skip_reason and record.skip_reason.value,
        trigger=record.trigger.value,
        attempts=None if attempts is None else [attempt_out(each) for each in attempts],
        error=_error(record.error),
        worker_name=None if record.called is None else record.called.name,
        host=None if record.called is None else record.called.host,
        next_attempt=None if record.next_try is None else _next_attempt(record.next_try),
        artifacts=None if record.artifacts is None else [artifact_out(each) for each in record.artifacts],
        progress=None if record.progress is None else _progress(record.progress),
        usage=None if record.usage is None else dict(record.usage),
    )


def artifact_out(artifact: Artifact) -> ArtifactOut:
    return ArtifactOut.from_value(artifact, sha256=artifact.sha256.hex())


def _next_attempt(planned: NextAttempt) -> NextAttemptOut:
    return NextAttemptOut(number=planned.number, at=planned.at, why=planned.why)


def _progress(progress: Progress) -> ProgressOut:
    return ProgressOut.from_value(progress)


def attempt_out(record: AttemptRecord) -> AttemptOut:
    return AttemptOut.from_value(
        record,
        status=record.status.value,
        worker_name=None if record.called is None else record.called.name,
        host=None if record.called is None else record.called.host,
        started_at=record.leased_at,
        finished_at=record.ended_at,
        duration_ms=None if record.ended_at is None else milliseconds(record.ended_at - record.leased_at),
        error=_error(record.error),
    )


def milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


def _error(error: RunError | None) -> RunErrorOut | None:
    return None if error is None else RunErrorOut.from_value(error)


def local_of(schedule: Schedule, time: PlannedTime) -> datetime:
    """Return the local time. For cron it is the planned local time, even if the clocks skip it."""
    if isinstance(schedule, Cron):
        return time.local
    return time.planned_for.astimezone(load_zone(schedule.timezone)).replace(tzinfo=None)


def notes_of(schedule: Schedule, time: PlannedTime) -> Iterable[str]:
    if (dst := dst_note(schedule, time)) is not None:
        yield dst
    if time.skip is None and time.due_at > time.planned_for:
        yield f"It starts at {write_instant(time.due_at)}: spread, window or calendar put it off."
    if isinstance(schedule, Interval) and is_chained(schedule):
        yield f"The next one comes {write_duration(schedule.every)} after that run ends."


def _edge(edge: Edge) -> wire.Dependency:
    return wire.Dependency(
        job=edge.upstream, on=edge.on.value, mode=edge.mode.value, delay=edge.delay, max_age=edge.max_age
    )


def _target(target: Target | None) -> wire.Target | None:
    if target is None:
        return None
    if target.kind is TargetKind.HOST:
        return wire.HostTarget(host=target.name)
    return wire.ServerTarget(server=target.name)


def _window(window: Window | None) -> wire.Window | None:
    if window is None:
        return None
    days = [wire.WEEK[day] for day in sorted(window.days)]
    return wire.Window(start=window.start, end=window.end, days=days, otherwise=window.otherwise.value)


@lru_cache(SHARED)
def retry_out(retry: Retry) -> wire.Retry:
    return wire.Retry.from_value(retry, strategy=retry.strategy.value, delays=list(retry.delays))


@lru_cache(SHARED)
def _notify(policy: NotifyPolicy | None) -> wire.Notify | None:
    if policy is None:
        return None
    return wire.Notify(
        email=policy.email,
        slack=policy.slack,
        whatsapp=policy.whatsapp,
        recipients=list(policy.recipients),
    )


def retention_out(retention: Retention) -> wire.Retention:
    return wire.Retention(keep=retention.keep, keep_last=retention.keep_last, mode=retention.mode.value)


@lru_cache(SHARED)
def _breaker(breaker: Breaker) -> wire.Breaker:
    return wire.Breaker(after=breaker.after, action=breaker.action.value)


def _fields(definition: Definition, show: Show = _call) -> dict[str, Any]:
    """Return the fields that a person wrote, for a shape that may show more. `show` makes the parts that many jobs have alike."""
    spec = definition.spec
    return {
        **{name: getattr(spec, name) for name in SAME_IN_SPEC},
        **{name: getattr(definition, name) for name in SAME_IN_DEFINITION},
        "name": definition.name,
        "config": dict(definition.config),
        "payload": dict(definition.payload),
        "schedule": show(schedule_out, spec.schedule),
        "window": _window(spec.window),
        "calendars": list(spec.calendars),
        "depends_on": [_edge(edge) for edge in definition.depends_on],
        "depends_when": spec.depends_when.value,
        "retry": show(retry_out, spec.retry),
        "overlap": spec.overlap.rule.value,
        "max_queued": spec.overlap.max_queued,
        "misfire": spec.misfire.rule.value,
        "grace": spec.misfire.grace,
        "max_catch_up": spec.misfire.max_catch_up,
        "breaker": show(_breaker, spec.breaker),
        "timeout": spec.limits.timeout,
        "start_deadline": spec.limits.start_deadline,
        "on_lost": spec.limits.on_lost.value,
        "target": _target(spec.target),
        "retention": show(retention_out, definition.retention),
        "notify": _notify(definition.notify),
        "budgets": [budget_out(each) for each in spec.budgets],
        "tags": list(spec.tags),
        "external_ref": None if definition.external_ref is None else dict(definition.external_ref),
        "owner": definition.owner_id,
        "inherited": dict(definition.inherited),
    }
