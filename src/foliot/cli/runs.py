"""`foliot runs`: what ran and what did not, with logs, artifacts, retry and cancel. RUN is an id, or JOB#12."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli import artifacts
from foliot.cli.input_files import parse_json_object
from foliot.cli.lookup import RunRef, find_job, find_run
from foliot.cli.output import format_size, pluralize
from foliot.cli.progress import LIVE, note_on_interrupt, wait_for_run
from foliot.cli.session import (
    FIRST_20,
    MAX_PAGE,
    DryRun,
    Paging,
    Session,
    Yes,
    api_command,
    confirm,
    view_command,
)
from foliot.cli.tables import (
    BOLD,
    DIM,
    RED,
    RUN_MARKS,
    Block,
    Column,
    StyledLine,
    Table,
    dry_run_page,
    facts,
    line,
    marked_status,
    stack,
    styled,
)
from foliot.cli.times import (
    format_milliseconds,
    load_zone,
    local_time_relative,
    local_times,
    local_zone,
    relative,
)
from foliot.cli.usage import format_usage
from foliot.domain.lifecycle import RunStatus

if TYPE_CHECKING:
    from foliot.wire.bulk import RunBulkOut
    from foliot.wire.dry_run import RunDryRunOut
    from foliot.wire.runs import AttemptOut, LogLineOut, RunOut

MAX_FILES = 8  # named on the page of a run
NO_LINES = """It wrote no lines. A python job writes them with its context:
  def sync(input, ctx):
      ctx.log("1,200 rows copied")"""
_LOG_STYLES = {"stderr": RED, "system": DIM}
app = typer.Typer(
    help="Runs: what ran, what did not, and why. RUN is an id, or JOB#12.", no_args_is_help=True
)
app.add_typer(artifacts.app, name="artifacts")


@app.command("list")
@view_command
def list_runs(
    session: Session,
    q: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER", help="Such as status:failed tag:billing since:24h."),
    ] = None,
    status: Annotated[list[RunStatus] | None, typer.Option(help="Only this status; repeatable.")] = None,
    job: Annotated[list[str] | None, typer.Option(help="Only of this job.", metavar="JOB")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only of jobs with this tag.", metavar="TAG")] = None,
    queue: Annotated[
        list[str] | None, typer.Option(help="Only of jobs of this queue.", metavar="QUEUE")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Planned since: 24h, 2026-11-01.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Planned until.", metavar="TIME")] = None,
    paging: Paging = FIRST_20,
) -> None:
    """List runs, newest first."""
    jobs = [str(find_job(session.client, each).id) for each in job or ()]
    found = paging.fetch(
        session.client.runs.list,
        q=" ".join(q) if q else None,
        status=[each.value for each in status or ()] or None,
        job=jobs or None,
        tag=tag,
        queue=queue,
        since=since,
        until=until,
    )
    session.show_list(found, lambda: run_table(found.items, session.now))


@app.command()
@view_command
def show(session: Session, run: RunRef) -> None:
    """Show a run: its times, its result, every attempt, its input and output."""
    found = find_run(session.client, run)
    zone = session.client.jobs.get(found.job_id).schedule.timezone if session.is_table else "UTC"
    session.show(found, lambda: run_page(found, zone, session.now))


@app.command()
@api_command
def logs(
    session: Session,
    run: RunRef,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new lines until the run ends.")
    ] = False,
    times: Annotated[bool, typer.Option("-t", "--times", help="Put the time before each line.")] = False,
) -> None:
    """Print the log of a run. With -f, until it ends; the exit code is then 1 if it did not succeed."""
    found = find_run(session.client, run)
    zone = local_zone() if times else None
    if follow:
        _follow_logs(session, found, zone)
    else:
        _print_logs(session, found, zone)


def _print_logs(session: Session, run: RunOut, zone: str | None) -> None:
    cursor: str | None = None
    count = 0
    while True:
        page = session.client.runs.logs(run.id, limit=MAX_PAGE, cursor=cursor)
        for each in page.items:
            session.show_line(each, lambda each=each: log_line(each, zone))  # type: ignore[misc]
        count += len(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    if not count:
        session.note(NO_LINES)
    if page.truncated:
        session.note("The log was longer than the limit; the rest was not stored.")
    if run.status in LIVE:
        session.note(f"The run is {run.status}. Use -f to wait for more lines.")


def _follow_logs(session: Session, run: RunOut, zone: str | None) -> None:
    from foliot.wire.runs import LogEndOut

    count = 0
    with note_on_interrupt(run):
        if run.status in {"ready", "waiting"}:
            session.note_stream(f"{run_name(run)} is {run.status}. Its lines appear when it starts.")
        for each in session.client.runs.follow_logs(run.id):
            if isinstance(each, LogEndOut):
                if not count:
                    session.note(NO_LINES)
                session.note(f"{run_name(run)}: {each.status}")
                if each.status != "succeeded":
                    raise typer.Exit(1)
            else:
                count += 1
                session.show_line(each, lambda each=each: log_line(each, zone))  # type: ignore[misc]


@app.command()
@api_command
def retry(
    session: Session,
    run: RunRef,
    given: Annotated[
        str | None,
        typer.Option("--input", help="JSON object to merge over its input, or @FILE.", metavar="JSON"),
    ] = None,
    override: Annotated[bool, typer.Option("--override", help="Even while a freeze holds the job.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; exit code 1 if it fails.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Repeat a finished run, as a new run."""
    found = find_run(session.client, run)
    overlay = None if given is None else parse_json_object(given, "--input")
    if dry_run:
        tried = session.client.runs.dry_run.retry(found.id, input=overlay, override=override)
        session.show(tried, lambda: run_dry_run_page(tried, "Would create"))
        return
    made = session.client.runs.retry(found.id, input=overlay, override=override)
    if wait:
        made = wait_for_run(session, made)
    session.show(made, lambda: run_line(made, "Retried" if wait else "Retrying as"))
    if wait and made.status != "succeeded":
        raise typer.Exit(1)


@app.command()
@api_command
def cancel(
    session: Session,
    run: RunRef,
    reason: Annotated[str | None, typer.Option(help="Why.", metavar="TEXT")] = None,
    force: Annotated[bool, typer.Option("--force", help="Do not wait for its worker to stop.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Cancel a run. If it is running, its worker stops it."""
    found = find_run(session.client, run)
    if dry_run:
        tried = session.client.runs.dry_run.cancel(found.id, reason=reason, force=force)
        session.show(tried, lambda: run_dry_run_page(tried, "Would cancel"))
        return
    if found.status == "running":
        confirm(f"{found.job_name} #{found.number} is running. Cancel it?", yes=yes)
    ended = session.client.runs.cancel(found.id, reason=reason, force=force)
    verb = "Cancelled" if ended.status == "cancelled" else "Cancelling"
    session.show(ended, lambda: run_line(ended, verb))


class RunBulkAction(StrEnum):
    RETRY = "retry"
    CANCEL = "cancel"


@app.command()
@api_command
def bulk(
    session: Session,
    action: Annotated[RunBulkAction, typer.Argument(metavar="ACTION", help=", ".join(RunBulkAction) + ".")],
    q: Annotated[
        str, typer.Option("-q", "--query", help="Filter, as in `foliot runs list`.", metavar="FILTER")
    ],
    reason: Annotated[str | None, typer.Option(help="With cancel: why.", metavar="TEXT")] = None,
    override: Annotated[
        bool, typer.Option("--override", help="With retry: even while a freeze holds the job.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Retry or cancel every run that a filter finds, such as -q "status:failed since:24h". Counts them first, and asks.

    Takes at most 500 runs. If their number changes meanwhile, nothing is done.
    """
    seen = session.client.runs.bulk(action.value, q=q, dry_run=True)
    if dry_run or not seen.done:
        session.show(seen, lambda: run_bulk_page(seen))
        return
    rest = f" ({seen.failed:,} not possible)" if seen.failed else ""
    confirm(
        f"{pluralize(seen.found, 'run matches', 'runs match')} {q or 'everything'}. {action.value.capitalize()} {seen.done:,}{rest}?",
        yes=yes,
    )
    done = session.client.runs.bulk(
        action.value, q=q, expected_count=seen.found, reason=reason, override=override
    )
    session.show(done, lambda: run_bulk_page(done))
    if done.failed > seen.failed:
        raise typer.Exit(1)


def run_bulk_page(result: RunBulkOut) -> Block:
    past = {"retry": "Retried", "cancel": "Cancelled"}[result.action]
    verb = f"Would {result.action}" if result.dry_run else past
    refused = f" {pluralize(result.failed, 'run')} cannot." if result.failed else ""
    more = " There may be more: repeat it." if result.more or result.remaining else ""
    return stack(
        line((verb, BOLD), f" {pluralize(result.done, 'run')}.{refused}{more}"),
        styled("Nothing was done.") if result.dry_run else None,
    )


def run_table(runs: Sequence[RunOut], now: datetime, *, of_one_job: bool = False) -> Table[RunOut]:
    # All times with seconds, or all without.
    clock = "%a %d %b %H:%M:%S" if any(run.planned_local.second for run in runs) else "%a %d %b %H:%M"
    columns: list[Column[RunOut]] = [
        Column("RUN", lambda run: f"#{run.number}" if of_one_job else run_name(run), wrap=True),
        Column("PLANNED", lambda run: run.planned_local.strftime(clock)),
        Column("", lambda run: relative(run.planned_for - now), DIM, drop=2),
        Column("STATUS", run_status),
        Column("TOOK", run_duration, drop=3),
        Column("BY", lambda run: run.trigger, DIM, drop=1),
        Column("WHAT", _remark, wrap=True),
    ]
    return Table(columns, runs, empty="No runs.")


def run_page(run: RunOut, zone: str, now: datetime) -> Block:
    def at(instant: datetime | None) -> str | None:
        return None if instant is None else local_time_relative(instant, zone, now)

    details = facts(
        (
            ("id", str(run.id)),
            ("status", run_status(run)),
            ("asked to stop", at(run.cancel_requested_at) if run.status == "running" else None),
            ("note", run.note),
            ("planned", at(run.planned_for)),
            (
                "stands for",
                f"{_planned_times(run)}, until {at(run.planned_until)}" if run.planned_until else None,
            ),
            ("by", _triggered_by(run)),
            ("next try", _next_attempt(run, zone, now)),
            ("because", None if run.next_attempt is None else styled(run.next_attempt.why, RED)),
            ("started", at(run.started_at)),
            ("finished", at(run.finished_at)),
            ("progress", _progress(run)),
            ("took", run_duration(run) or None),
            ("used", format_usage(run.usage) if run.usage else None),
            ("late by", format_milliseconds(run.lag_ms) if run.lag_ms else None),
            ("where", _worker(run)),
            ("error", _final_error(run)),
            ("retry of", str(run.retry_of) if run.retry_of else None),
            ("input", _json(run.input)),
            ("output", _json(run.output)),
            ("files", _files(run)),
            ("external id", next((each.external_id for each in reversed(run.attempts or [])), None)),
            ("job id", str(run.job_id)),
        )
    )
    attempts = run.attempts or []
    return stack(
        styled(run_name(run), BOLD), details, attempt_table(attempts, zone) if len(attempts) > 1 else None
    )


def attempt_table(attempts: Sequence[AttemptOut], zone: str) -> Table[AttemptOut]:
    started = dict(
        zip(
            (each.number for each in attempts),
            local_times([each.started_at for each in attempts], zone),
            strict=True,
        )
    )
    columns: list[Column[AttemptOut]] = [
        Column("ATTEMPT", lambda each: each.number),
        Column(
            "STATUS",
            lambda each: (
                line(marked_status("failed", RUN_MARKS), " (lost)")
                if each.status == "lost"
                else marked_status(each.status, RUN_MARKS)
            ),
        ),
        Column("STARTED", lambda each: started[each.number]),
        Column("TOOK", run_duration),
        Column("WHERE", _worker_name, DIM, drop=1),
        Column(
            "WHAT",
            lambda each: f"{each.error.code}: {each.error.message}" if each.error else "",
            RED,
            wrap=True,
        ),
    ]
    if len({each.revision for each in attempts}) > 1:  # the job was edited between them
        columns.insert(-1, Column("REVISION", lambda each: each.revision))
    return Table(columns, attempts)


def log_line(entry: LogLineOut, zone: str | None) -> StyledLine:
    """Return the line as written; with a zone, behind its time there."""
    text = styled(entry.text.rstrip("\n"), _LOG_STYLES.get(entry.stream, ""))
    if zone is None:
        return text
    return line((f"{entry.at.astimezone(load_zone(zone)):%H:%M:%S.%f}"[:-3] + "  ", DIM), text)


def run_line(run: RunOut, verb: str) -> StyledLine:
    """Return one line for the result of a command: `Ran hello#12: ✓ succeeded (id)`."""
    error = f", {run.error.message}" if run.error is not None else ""
    return line((verb, BOLD), f" {run_name(run)}: ", run_status(run), (error, RED), (f" ({run.id})", DIM))


def run_dry_run_page(tried: RunDryRunOut, verb: str) -> Block:
    return dry_run_page(f"{verb} {run_name(tried.run)}", tried.sentence)


def run_name(run: RunOut) -> str:
    """Return the name that `foliot runs show` accepts: hello#12."""
    return f"{run.job_name or run.job_id}#{run.number}"


def run_duration(run: RunOut | AttemptOut) -> str:
    return "" if run.duration_ms is None else format_milliseconds(run.duration_ms)


def run_status(run: RunOut) -> StyledLine:
    return line(marked_status(run.status, RUN_MARKS), f" ({run.skip_reason})" if run.skip_reason else "")


def _remark(run: RunOut) -> StyledLine:
    if run.error is not None:
        return styled(f"{run.error.code}: {run.error.message}".replace("\n", " "), RED)
    if run.planned_until is not None:
        return styled(_planned_times(run))
    if run.note:
        return styled(run.note)
    return styled(pluralize(run.attempt_count, "attempt") if run.attempt_count > 1 else "")


def _planned_times(run: RunOut) -> str:
    """A skip record may stand for many planned times."""
    return "over 10,000 planned times" if run.count is None else pluralize(run.count, "planned time")


def _triggered_by(run: RunOut) -> str:
    who = run.triggered_by_name or run.triggered_by  # a deleted member has only an id
    return f"{run.trigger}, {who}" if who else run.trigger


def _worker_name(run: RunOut | AttemptOut) -> str | None:
    return run.worker_name if run.host is None else f"host {run.host}"


def _worker(run: RunOut) -> str | None:
    return None if run.worker is None else _worker_name(run) or f"unknown worker ({run.worker})"


def _next_attempt(run: RunOut, zone: str, now: datetime) -> str | None:
    planned = run.next_attempt
    if planned is None:
        return None
    due = local_time_relative(planned.at, zone, now) if planned.at > now else "as soon as a worker takes it"
    return f"attempt {planned.number}, {due}"


def _progress(run: RunOut) -> str | None:
    progress = run.progress
    if progress is None:
        return None
    text = f"{progress.share:.0%} ({progress.done:g} of {progress.total:g})"
    return f"{text}: {progress.note}" if progress.note else text


def _final_error(run: RunOut) -> StyledLine | None:
    """Return the error of a run that is not retried. Otherwise `because` shows it."""
    if run.error is None or run.next_attempt is not None:
        return None
    return styled(f"{run.error.code}: {run.error.message}", RED)


def _files(run: RunOut) -> str | None:
    shown = [f"{each.name} ({format_size(each.size)})" for each in (run.artifacts or ())[:MAX_FILES]]
    more = len(run.artifacts or ()) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") or None


def _json(value: object) -> str | None:
    return None if value is None or value == {} else json.dumps(value, ensure_ascii=False)
