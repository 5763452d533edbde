"""How jobs look: pure functions from the shapes of the API to what is drawn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.tables import (
    BAD,
    GOOD,
    JOB_MARKS,
    QUIET,
    SOON,
    STRONG,
    cell,
    columns,
    facts,
    mark,
    marked,
    stacked,
)
from foliot.cli.times import local_time, local_time_relative, local_times, relative, relative_short
from foliot.wire.durations import write_duration
from foliot.wire.jobs import JobFields, JobOut
from foliot.wire.schedules import CronOut, IntervalOut, OnceOut, PlannedOut, ScheduleOut

SHORTEST_ID = 8
ORDER = ("active", "pending", "paused", "disabled", "failed", "completed", "expired", "archived")


def job_list(jobs: Sequence[JobOut], now: datetime, *, total: int | None = None) -> RenderableType:
    """The heading counts; each row: how it is, its name, when it runs, what came of it last, what comes next."""
    if not jobs:
        return Text("No jobs.")
    shorten = _shortest(jobs)
    rows = [
        (
            mark("failed", JOB_MARKS) if _is_ill(job) else mark(job.status, JOB_MARKS),
            cell(job.name),
            cell(job.type, QUIET),
            cell(schedule_in_short(job.schedule)),
            _last(job, now),
            _next(job, now),
            cell(str(job.id)[:shorten], QUIET),
        )
        for job in jobs
    ]
    table = columns(
        ("mark", "name", "type", "schedule", "last", "next", "id"),
        rows,
        wraps=("name", "last"),
        drops=("type", "id", "schedule"),
        indent=2,
        headed=False,
    )
    more = [f"first {len(jobs):,} of {total:,}"] if total is not None and total > len(jobs) else []
    heading = Text(
        f"Jobs ({', '.join([*counts(Counter(job.status for job in jobs)), *more])}):", style=STRONG
    )
    return stacked(heading, table)


def counts(by_status: Counter[str]) -> list[str]:
    """7 active, 1 paused."""
    return [f"{by_status[status]:,} {status}" for status in ORDER if by_status[status]]


def job_page(job: JobOut, now: datetime, times: Sequence[PlannedOut] = ()) -> RenderableType:
    """One job: what it is, when, how it goes, under which rules."""
    zone = job.schedule.timezone
    last = None
    if job.last_run_at is not None:
        last = f"{job.last_run_status} {local_time_relative(job.last_run_at, zone, now)}"
    ran = f"{pluralize(job.run_count, 'run')}: {job.success_count:,} succeeded, {job.failure_count:,} failed"
    ran += f"; {job.skip_count:,} skipped"
    return stacked(
        cell(job.name, STRONG),
        facts(
            (
                ("id", str(job.id)),
                ("about", job.description or None),
                ("status", status_line(job, now)),
                ("runs", cell(job.schedule.words)),
                ("next", local_time_relative(job.next_run_at, zone, now) if job.next_run_at else None),
                *(("", local_time_relative(each.planned_for, zone, now)) for each in times[1:]),
                ("last", last),
                ("error", cell(job.last_error, BAD) if job.last_error else None),
                ("record", ran),
                ("type", job.type),
                ("config", _json(job.config)),
                ("payload", _json(job.payload)),
                *policies(job),
                ("tags", ", ".join(job.tags) or None),
                ("managed by", f"code, the app {job.managed_by}" if job.managed_by else None),
                ("revision", f"{job.revision}, created {relative(job.created_at - now)}"),
            )
        ),
    )


def policies(job: JobOut) -> list[tuple[str, str | None]]:
    """What differs from what a job has by default, except the three that people always ask about."""
    defaults = {name: field.default for name, field in JobFields.model_fields.items()}
    told: list[tuple[str, str | None]] = [
        ("timeout", write_duration(job.timeout)),
        ("overlap", job.overlap),
        ("retry", _retry(job)),
    ]
    shown = {
        "timeout",
        "overlap",
        "retry",
        "name",
        "description",
        "type",
        "config",
        "payload",
        "schedule",
        "owner",
        "tags",
        *(("external_ref",) if job.managed_by else ()),
    }
    plain = job.model_dump(mode="json")
    told += [
        (name, _json(plain[name]) if isinstance(plain[name], dict | list) else str(plain[name]))
        for name in JobFields.model_fields
        if name not in shown and getattr(job, name) != defaults[name]
    ]
    return told


def status_line(job: JobOut, now: datetime) -> Text:
    text = marked(job.status, JOB_MARKS)
    if job.status_reason:
        text.append(f" ({_reason(job)})")
    text.append(f" since {relative(job.status_at - now)}" if job.status != "active" else "")
    if job.paused_until is not None:
        text.append(f", until {local_time_relative(job.paused_until, job.schedule.timezone, now)}")
    return text


def moved(job: JobOut, what: str, now: datetime) -> Text:
    """After a verb: what was done to which, and what comes next."""
    text = Text.assemble((what, STRONG), f" {cell(job.name).plain}.")
    if job.next_run_at is not None:
        text.append(f" Next: {local_time_relative(job.next_run_at, job.schedule.timezone, now)}.")
    return text


def created(job: JobOut, now: datetime) -> RenderableType:
    rows: list[tuple[str, Text | str | None]] = [
        ("id", str(job.id)),
        ("runs", job.schedule.words),
        (
            "next",
            local_time_relative(job.next_run_at, job.schedule.timezone, now) if job.next_run_at else None,
        ),
        ("status", None if job.status == "active" else status_line(job, now)),
    ]
    head = Text.assemble(("Created", STRONG), f" {cell(job.name).plain}.")
    return stacked(head, facts(rows), *warned(job))


def warned(job: JobOut) -> list[Text]:
    """What stands in the way of its runs, for who has just written it."""
    return [cell(f"Note: {each}", SOON) for each in job.warnings]


def next_times(times: Sequence[PlannedOut], zone: str, now: datetime) -> RenderableType:
    if not times:
        return Text("It has no next time.")
    in_utc = "%Y-%m-%dT%H:%M:%SZ" if any(each.planned_for.second for each in times) else "%Y-%m-%dT%H:%MZ"
    rows = [
        (
            cell(shown),
            cell(relative(each.planned_for - now)),
            cell(each.planned_for.strftime(in_utc), QUIET),
            cell("; ".join(each.notes)),
        )
        for shown, each in zip(local_times([each.planned_for for each in times], zone), times, strict=True)
    ]
    headers = (
        ("NEXT", "IN", "UTC", "NOTE") if any(each.notes for each in times) else ("NEXT", "IN", "UTC", "")
    )
    return columns(headers, rows, wraps=("NOTE",), drops=("UTC",))


def schedule_in_short(schedule: ScheduleOut) -> str:
    """`*/30 * * * *`, `every 10m`, `at 2027-01-02 18:00`, `by hand`."""
    if isinstance(schedule, CronOut):
        return schedule.expr if schedule.every_n_weeks == 1 else f"{schedule.expr} /{schedule.every_n_weeks}w"
    if isinstance(schedule, IntervalOut):
        return f"every {write_duration(schedule.every)}"
    if isinstance(schedule, OnceOut):
        return "at " + local_time(schedule.at, schedule.timezone).partition(" ")[2]
    return "by hand"


def _last(job: JobOut, now: datetime) -> Text:
    """What a person wants to know of the past: why it does not run, else what came of the last run."""
    if job.status in {"paused", "failed", "disabled"}:
        reason = _reason(job)
        return cell(
            job.status.capitalize() + (f" ({reason})" if reason else ""),
            BAD if job.status == "failed" else "",
        )
    if job.last_run_at is None:
        return cell("Never ran", QUIET)
    style = GOOD if job.last_run_status == "succeeded" else BAD if _is_bad(job.last_run_status) else QUIET
    return Text.assemble(
        f"Last: {relative_short(job.last_run_at, now)} (", (cell(job.last_run_status).plain, style), ")"
    )


def _next(job: JobOut, now: datetime) -> Text:
    return cell(f"Next: {relative_short(job.next_run_at, now)}") if job.next_run_at is not None else Text("")


def _reason(job: JobOut) -> str | None:
    """The breaker's sentence is told as lists tell it; others as they were given."""
    if job.status_reason and "failures in a row" in job.status_reason:
        return f"{job.consecutive_failures:,} consecutive failures"
    return job.status_reason


def _is_ill(job: JobOut) -> bool:
    return job.status == "active" and _is_bad(job.last_run_status)


def _is_bad(status: str | None) -> bool:
    return status in {"failed", "timed_out", "interrupted"}


def _retry(job: JobOut) -> str:
    retry = job.retry
    if retry.strategy == "none" or retry.max == 0:
        return "none"
    waits = ", ".join(write_duration(each) for each in retry.delays)
    how = (
        f"after {waits}"
        if retry.strategy == "list"
        else f"{retry.strategy}, from {write_duration(retry.base)}"
    )
    return f"{retry.max} more times, {how}"


def _json(value: object) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None


def _shortest(jobs: Sequence[JobOut]) -> int:
    """How much of their ids tells these jobs apart."""
    ids = sorted(str(job.id) for job in jobs)
    longest_shared = max(
        (next((at for at in range(36) if one[at] != other[at]), 35) for one, other in pairwise(ids)),
        default=0,
    )
    return max(SHORTEST_ID, longest_shared + 1)
