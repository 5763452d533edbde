"""`foliot jobs list|show|next|history`, and how a job looks in a list and on a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from foliot.cli.lookup import JobRef, find_job
from foliot.cli.output import pluralize
from foliot.cli.session import FIRST_20, FIRST_50, MAX_PAGE, Paging, Session, view_command
from foliot.cli.tables import (
    BOLD,
    DIM,
    GREEN,
    JOB_MARKS,
    RED,
    YELLOW,
    Block,
    Column,
    StyledLine,
    Table,
    facts,
    line,
    marked_status,
    stack,
    status_mark,
    styled,
)
from foliot.cli.times import local_time, local_time_relative, local_times, relative, relative_short
from foliot.domain.lifecycle import JobStatus

if TYPE_CHECKING:
    from foliot.wire.freezes import FreezeOut
    from foliot.wire.jobs import JobOut, Retry
    from foliot.wire.schedules import PlannedOut, ScheduleOut
    from foliot.wire.shape import Page

MIN_ID = 8  # characters of an id in a list
STATUS_ORDER = ("active", "pending", "paused", "disabled", "failed", "completed", "expired", "archived")
FAILURES = frozenset({"failed", "timed_out", "interrupted"})
FIRE_RESULTS = {  # what became of the planned time recorded last
    "queued": "became a run",
    "skipped": "was skipped",
    "scheduler_failed": "could not be planned",
}
ALWAYS_SHOWN = frozenset({"timeout", "overlap", "retry"})
SHOWN_ELSEWHERE = frozenset(
    {
        "name",
        "description",
        "type",
        "config",
        "payload",
        "schedule",
        "owner",
        "tags",
        "calendars",
        "depends_on",
    }
)


@view_command
def list_jobs(
    session: Session,
    q: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILTER", help='Such as status:failed tag:billing since:24h "part of a name".'
        ),
    ] = None,
    status: Annotated[
        list[JobStatus] | None,
        typer.Option(help="Only this status; repeatable. Archived jobs appear only with --status archived."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only with this tag; repeatable.", metavar="TAG")
    ] = None,
    type: Annotated[  # noqa: A002  # the name of the field
        list[str] | None, typer.Option(help="Only of this type; repeatable.", metavar="TYPE")
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option(help="Only of this queue; repeatable.", metavar="QUEUE")
    ] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option("--owner", "--agent", help="Only of this owner; `me` is you.", metavar="WHO"),
    ] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Only disabled jobs.")] = False,
    sort: Annotated[
        str | None,
        typer.Option(help="created_at, name or next_run_at; -name is descending.", metavar="FIELD"),
    ] = None,
    paging: Paging = FIRST_50,
) -> None:
    """List jobs: status, name, schedule, last run, next run."""
    statuses = [each.value for each in status or ()] + (["disabled"] if disabled else [])

    def get_page(limit: int = MAX_PAGE, cursor: str | None = None) -> Page[JobOut]:
        return session.client.jobs.list(
            q=" ".join(q) if q else None,
            status=statuses or None,  # type: ignore[arg-type]  # its values are those of the wire
            tag=tag,
            type=type,
            queue=queue,
            owner=owner,
            sort=sort,
            count=True if session.is_table and cursor is None else None,
            limit=limit,
            cursor=cursor,
        )

    found = paging.fetch(get_page)
    session.show_list(
        found,
        lambda: job_list(
            found.items, session.now, total=found.total, freezes=_load_freezes(session, found.items)
        ),
    )
    if not found.items and not (q or statuses or tag or type or queue or owner):
        session.note(
            "Create one with:"
            ' foliot jobs create --name hello --python builtins:print --when "every 10 minutes"'
        )


@view_command
def show(
    session: Session,
    job: JobRef,
    n: Annotated[int, typer.Option("-n", min=1, max=20, help="Number of next times.")] = 3,
) -> None:
    """Show a job: its schedule in words, its next times, its run counts, its settings."""
    found = find_job(session.client, job)
    if not session.is_table:
        session.show(found, stack)
        return
    times = session.client.jobs.next(found.id, n).items
    freeze = covering_freeze(_load_freezes(session, [found]), found.next_run_at or session.now, found)
    session.draw(job_page(found, session.now, times, _related_names(session, found), freeze))


@view_command
def next_times(
    session: Session,
    job: JobRef,
    n: Annotated[int, typer.Option("-n", min=1, max=100, help="Number of times.", metavar="N")] = 5,
) -> None:
    """Show when a job runs next: in its own time zone, from now, and in UTC."""
    found = find_job(session.client, job)
    times = session.client.jobs.next(found.id, n)
    session.show(times, lambda: planned_time_table(times.items, found.schedule.timezone, session.now))
    for note in times.notes:
        session.note(note)
    if not times.items and found.status == "active" and found.schedule.kind == "manual":
        after = "after the jobs it depends on, or " if found.depends_on else ""
        session.note(f'It has no schedule: it runs {after}on request, with: foliot jobs run "{found.name}"')
    elif not times.items:
        session.note(
            f"See why with: foliot jobs why {found.id}"
            if found.status == "active"
            else f"The job is {found.status}."
            if found.paused_until is None
            else f"The job is paused until {local_time_relative(found.paused_until, found.schedule.timezone, session.now)}."
        )


@view_command
def history(session: Session, job: JobRef, paging: Paging = FIRST_20) -> None:
    """List what happened at the planned times of a job, newest first: runs, and skips with their reasons."""
    from foliot.cli.runs import run_table  # it costs the other commands of this module their start

    found = find_job(session.client, job)
    runs = paging.fetch(session.client.jobs.runs, found.id)
    session.show_list(runs, lambda: run_table(runs.items, session.now, of_one_job=True))


def job_list(
    jobs: Sequence[JobOut],
    now: datetime,
    *,
    total: int | None = None,
    freezes: Sequence[FreezeOut] = (),
) -> Block:
    """Show the number of jobs in each status, then one row for each job. A next time within a freeze is held."""
    if not jobs:
        return styled("No jobs.")
    id_length = _unique_id_length(jobs)
    columns: list[Column[JobOut]] = [
        Column("mark", lambda job: status_mark("failed" if _is_failing(job) else job.status, JOB_MARKS)),
        Column("name", lambda job: job.name, wrap=True),
        Column("owner", lambda job: job.owner_name or "", DIM, drop=3),
        Column("type", lambda job: job.type, DIM, drop=1),
        Column("schedule", lambda job: format_schedule(job.schedule), drop=4),
        Column("last", lambda job: _last_run(job, now), wrap=True),
        Column("next", lambda job: _next_run(job, now, freezes)),
        Column("id", lambda job: str(job.id)[:id_length], DIM, drop=2),
    ]
    if not any(job.owner_name for job in jobs):
        columns = [each for each in columns if each.title != "owner"]
    counts = format_counts(Counter(job.status for job in jobs))
    if total is not None and total > len(jobs):
        counts.append(f"first {len(jobs):,} of {total:,}")
    return stack(
        styled(f"Jobs ({', '.join(counts)}):", BOLD), Table(columns, jobs, indent=2, show_titles=False)
    )


def job_page(
    job: JobOut,
    now: datetime,
    times: Sequence[PlannedOut] = (),
    names: Mapping[UUID, str] | None = None,
    freeze: FreezeOut | None = None,
) -> Block:
    """Show a job. `names` are those of its upstream jobs and calendars, by id; `freeze` covers its next time."""
    zone = job.schedule.timezone
    last = None
    if job.last_run_at is not None:
        last = f"{job.last_run_status} {local_time_relative(job.last_run_at, zone, now)}"
    counts = (
        f"{pluralize(job.run_count, 'run')}: {job.success_count:,} succeeded, {job.failure_count:,} failed"
        if job.run_count
        else "no run has ended yet"
    )
    record = f"{counts}; {job.skip_count:,} skipped"
    if job.failed_attempt_count > job.failure_count:
        record += f"; {pluralize(job.failed_attempt_count, 'failed attempt')}"
    if job.schedule_error_count:
        record += f"; {pluralize(job.schedule_error_count, 'scheduler error')}"
    return stack(
        styled(job.name, BOLD),
        facts(
            (
                ("id", str(job.id)),
                ("about", job.description or None),
                ("status", status_line(job, now)),
                ("runs", job.schedule.words),
                ("next", local_time_relative(job.next_run_at, zone, now) if job.next_run_at else None),
                *(("", local_time_relative(each.planned_for, zone, now)) for each in times[1:]),
                ("held", None if freeze is None else styled(freeze_line(freeze, zone, now), YELLOW)),
                ("last", last),
                ("last planned", FIRE_RESULTS.get(job.last_fire_status or "")),
                ("error", styled(job.last_error, RED) if job.last_error else None),
                ("record", record),
                ("owner", job.owner_name),
                ("type", job.type),
                ("config", _json(job.config)),
                ("payload", _json(job.payload)),
                *_settings(job, names or {}),
                ("tags", ", ".join(job.tags) or None),
                ("managed by", f"code, the app {job.managed_by}" if job.managed_by else None),
                ("revision", f"{job.revision}, created {relative(job.created_at - now)}"),
            )
        ),
    )


def freeze_line(freeze: FreezeOut, zone: str, now: datetime) -> str:
    """`by a freeze until … (release day): its planned times are skipped`."""
    end = (
        "until it is lifted"
        if freeze.end_at is None
        else f"until {local_time_relative(freeze.end_at, zone, now)}"
    )
    then = {
        "skip": "planned times within it are skipped",
        "latest": "the newest planned time within it runs then",
        "all": f"the planned times within it run then, {freeze.per_minute:,} a minute",
    }[freeze.after]
    return f"by a freeze {end} ({freeze.reason}): {then}"


def created_page(job: JobOut, now: datetime) -> Block:
    zone = job.schedule.timezone
    return stack(
        line(("Created", BOLD), f" {job.name}."),
        facts(
            (
                ("id", str(job.id)),
                ("runs", job.schedule.words),
                ("next", local_time_relative(job.next_run_at, zone, now) if job.next_run_at else None),
                ("status", None if job.status == "active" else status_line(job, now)),
            )
        ),
        *warning_lines(job.warnings),
    )


def planned_time_table(times: Sequence[PlannedOut], zone: str, now: datetime) -> Table[PlannedOut]:
    utc = "%Y-%m-%dT%H:%M:%SZ" if any(each.planned_for.second for each in times) else "%Y-%m-%dT%H:%MZ"
    instants = [each.planned_for for each in times]
    local = dict(zip(instants, local_times(instants, zone), strict=True))
    columns: list[Column[PlannedOut]] = [
        Column("NEXT", lambda each: local[each.planned_for]),
        Column("IN", lambda each: relative(each.planned_for - now)),
        Column("UTC", lambda each: each.planned_for.strftime(utc), DIM, drop=1),
    ]
    if any(each.notes for each in times):
        columns.append(Column("NOTE", lambda each: "; ".join(each.notes), wrap=True))
    return Table(columns, times, empty="It has no next time.")


def result_line(job: JobOut, verb: str, now: datetime) -> StyledLine:
    """`Paused nightly until …`, or `Resumed nightly. Next: …`."""
    following = until = ""
    if job.status == "paused":
        until = f" {pause_end(job, now)}"
    if job.next_run_at is not None:
        following = f" Next: {local_time_relative(job.next_run_at, job.schedule.timezone, now)}."
    return line((verb, BOLD), f" {job.name}{until}.{following}")


def pause_end(job: JobOut, now: datetime) -> str:
    if job.paused_until is None:
        return "until it is resumed"
    return f"until {local_time_relative(job.paused_until, job.schedule.timezone, now)}"


def status_line(job: JobOut, now: datetime) -> StyledLine:
    reason = f" ({_reason(job)})" if job.status_reason else ""
    since = f" since {relative(job.status_at - now)}" if job.status != "active" else ""
    until = ""
    if job.paused_until is not None:
        until = f", until {local_time_relative(job.paused_until, job.schedule.timezone, now)}"
    return line(marked_status(job.status, JOB_MARKS), f"{reason}{since}{until}")


def warning_lines(warnings: Sequence[str]) -> list[StyledLine]:
    return [styled(f"Note: {each}", YELLOW) for each in warnings]


def format_counts(by_status: Counter[str]) -> list[str]:
    """7 active, 1 paused."""
    return [f"{by_status[status]:,} {status}" for status in STATUS_ORDER if by_status[status]]


def format_schedule(schedule: ScheduleOut) -> str:
    """`*/30 * * * *`, `every 10m`, `at 02 Jan 2027 18:00 UTC`, `manual`."""
    if schedule.kind == "cron":
        return schedule.expr if schedule.every_n_weeks == 1 else f"{schedule.expr} /{schedule.every_n_weeks}w"
    if schedule.kind == "interval":
        from foliot.wire.durations import write_duration

        return f"every {write_duration(schedule.every)}"
    if schedule.kind == "once":
        return "at " + local_time(schedule.at, schedule.timezone).partition(" ")[2]
    return "manual"


def _last_run(job: JobOut, now: datetime) -> StyledLine:
    """Show why the job does not run, or else the result of its last run."""
    if job.status in {"paused", "failed", "disabled"}:
        reason = _reason(job)
        text = job.status.capitalize() + (f" ({reason})" if reason else "")
        return styled(text, RED if job.status == "failed" else "")
    if job.shadow:
        return styled("Shadow (nothing runs)", DIM)
    if job.last_run_at is None and job.failed_attempt_count:
        return styled(f"Retrying ({pluralize(job.failed_attempt_count, 'failed attempt')})", RED)
    if job.last_run_at is None:
        return styled("Never ran", DIM)
    result = job.last_run_status or ""
    style = GREEN if result == "succeeded" else RED if result in FAILURES else DIM
    return line(f"Last: {relative_short(job.last_run_at, now)} (", (result, style), ")")


def _next_run(job: JobOut, now: datetime, freezes: Sequence[FreezeOut]) -> StyledLine:
    if job.next_run_at is None:
        return styled("")
    freeze = covering_freeze(freezes, job.next_run_at, job)
    if freeze is None:
        return styled(f"Next: {relative_short(job.next_run_at, now)}")
    return styled("Skipped by a freeze" if freeze.after == "skip" else "Held by a freeze", YELLOW)


def covering_freeze(
    freezes: Sequence[FreezeOut], at: datetime, job: JobOut | None = None
) -> FreezeOut | None:
    """Return a freeze that is in force at `at`, over this job, or else over everything."""
    for each in freezes:
        scope = each.scope
        is_covered = scope.everything or (
            job is not None
            and (
                job.id in scope.jobs or job.queue in scope.queues or not set(scope.tags).isdisjoint(job.tags)
            )
        )
        if is_covered and each.start_at <= at and (each.end_at is None or at < each.end_at):
            return each
    return None


def _load_freezes(session: Session, jobs: Sequence[JobOut]) -> Sequence[FreezeOut]:
    """Load the current and future freezes, if a job has a next time that one may hold."""
    if not any(job.next_run_at for job in jobs):
        return ()
    return session.client.freezes.list().items


def _reason(job: JobOut) -> str | None:
    """Shorten the breaker's sentence for lists; return other reasons as given."""
    if job.status_reason and "failures in a row" in job.status_reason:
        return f"{job.consecutive_failures:,} consecutive failures"
    return job.status_reason


def _is_failing(job: JobOut) -> bool:
    is_retrying_first = job.last_run_at is None and job.failed_attempt_count > 0
    return job.status == "active" and (job.last_run_status in FAILURES or is_retrying_first)


def _settings(job: JobOut, names: Mapping[UUID, str]) -> list[tuple[str, str | None]]:
    """Return timeout, overlap and retry, and the other fields that differ from their defaults."""
    from foliot.wire.durations import write_duration
    from foliot.wire.jobs import JobFields

    rows: list[tuple[str, str | None]] = [
        ("timeout", write_duration(job.timeout) + _origin(job, "timeout")),
        ("overlap", job.overlap),
        ("retry", format_retry(job.retry) + _origin(job, "retry")),
    ]
    if job.calendars:
        rows.append(("calendars", ", ".join(names.get(each, str(each)) for each in job.calendars)))
    for each in job.depends_on:
        details: list[str] = [each.on, each.mode]
        details += [f"delay {write_duration(each.delay)}"] if each.delay else []
        details += [f"at most {write_duration(each.max_age)} old"] if each.max_age else []
        rows.append(("depends on", f"{names.get(each.job, str(each.job))} ({', '.join(details)})"))
    hidden = ALWAYS_SHOWN | SHOWN_ELSEWHERE | ({"external_ref"} if job.managed_by else set())
    values = job.model_dump(mode="json")
    for name, field in JobFields.model_fields.items():
        if name not in hidden and getattr(job, name) != field.default:
            value = values[name]
            text = _json(value) if isinstance(value, dict | list) else str(value)
            rows.append((name, (text or "") + _origin(job, name)))
    return rows


def _origin(job: JobOut, name: str) -> str:
    """Say where an inherited value comes from."""
    return f"  (of the {job.inherited[name]})" if name in job.inherited else ""


def format_retry(retry: Retry) -> str:
    from foliot.wire.durations import write_duration

    if retry.strategy == "none" or retry.max == 0:
        return "none"
    delays = ", ".join(write_duration(each) for each in retry.delays)
    how = (
        f"after {delays}"
        if retry.strategy == "list"
        else f"{retry.strategy}, from {write_duration(retry.base)}"
    )
    return f"{pluralize(retry.max, 'more time', 'more times')}, {how}"


def _related_names(session: Session, job: JobOut) -> dict[UUID, str]:
    """Return the names of the job's calendars and upstream jobs, by id."""
    wanted = ",".join(str(each.job) for each in job.depends_on)
    calendars = session.client.calendars.each() if job.calendars else ()
    jobs = session.client.jobs.each(q=f"id:{wanted}") if wanted else ()
    return {each.id: each.name for each in (*calendars, *jobs)}


def _json(value: object) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None


def _unique_id_length(jobs: Sequence[JobOut]) -> int:
    """Return how many characters tell the ids of these jobs apart."""
    ids = sorted(str(job.id) for job in jobs)
    longest_shared = max(
        (next((at for at in range(36) if one[at] != other[at]), 35) for one, other in pairwise(ids)),
        default=0,
    )
    return max(MIN_ID, longest_shared + 1)
