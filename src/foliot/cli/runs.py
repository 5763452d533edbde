"""`foliot runs list|show|logs|artifacts|retry|cancel`: the records of what ran and what did not. RUN is an id, or JOB#12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli import artifacts
from foliot.cli.choices import RunStatusChoice
from foliot.cli.input_files import parse_json_object
from foliot.cli.lookup import RunRef, find_job, find_run
from foliot.cli.paging import LONGEST_PAGE, All, Cursor, Limit, fetch_pages
from foliot.cli.progress import note_on_interrupt, wait_for_run
from foliot.cli.session import DryRun, OutputFormat, Session, Yes, api_command, confirm
from foliot.cli.times import local_zone

if TYPE_CHECKING:
    pass

app = typer.Typer(
    help="Runs: what ran, what did not, and why. RUN is an id, or JOB#12.", no_args_is_help=True
)
app.add_typer(artifacts.app, name="artifacts")
Several = list[str] | None
NO_LINES = """It wrote no lines. A python job writes them with its context:
  def sync(input, ctx):
      ctx.log("1,200 rows copied")"""


@app.command("list")
@api_command
def list_runs(
    session: Session,
    q: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER", help="Such as status:failed tag:billing since:24h."),
    ] = None,
    status: Annotated[list[RunStatusChoice] | None, typer.Option(help="Only these.")] = None,
    job: Annotated[Several, typer.Option(help="Only of this job.", metavar="JOB")] = None,
    tag: Annotated[Several, typer.Option(help="Only of jobs with this tag.", metavar="TAG")] = None,
    queue: Annotated[Several, typer.Option(help="Only of jobs of this queue.", metavar="QUEUE")] = None,
    since: Annotated[str | None, typer.Option(help="Planned since: 24h, 2026-11-01.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Planned until.", metavar="TIME")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """List runs, newest first."""
    from foliot.cli.run_rendering import run_list

    jobs = [str(find_job(session.client, each).id) for each in job or ()]
    runs, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.runs.list(
            q=" ".join(q) if q else None,
            status=[each.value for each in status or ()] or None,
            job=jobs or None,
            tag=tag,
            queue=queue,
            since=since,
            until=until,
            limit=n,
            cursor=at,
        ),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(runs, lambda: run_list(runs, session.now), next_cursor=next_cursor)
    if next_cursor and session.format is OutputFormat.TABLE:
        session.note("There are more: --all, or --limit N.")


@app.command()
@api_command
def show(session: Session, run: RunRef) -> None:
    """Show one run: when, what came of it, every attempt, its input and output."""
    from foliot.cli.run_rendering import run_page

    found = find_run(session.client, run)
    zone = (
        session.client.jobs.get(found.job_id).schedule.timezone
        if session.format is OutputFormat.TABLE
        else "UTC"
    )
    session.show(found, lambda: run_page(found, zone, session.now))


@app.command()
@api_command
def logs(
    session: Session,
    run: RunRef,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with new lines until it ends.")
    ] = False,
    times: Annotated[bool, typer.Option("-t", "--times", help="Put the time before each line.")] = False,
) -> None:
    """What a run wrote. With -f as it comes; the exit code is then 1 where the run did not succeed."""
    from foliot.cli.log_rendering import log_line
    from foliot.cli.run_rendering import called
    from foliot.wire.logs import LogEndOut

    found = find_run(session.client, run)
    zone = local_zone()
    if not follow:
        cursor: str | None = None
        wrote = 0
        while True:
            page = session.client.runs.logs(found.id, limit=LONGEST_PAGE, cursor=cursor)
            for line in page.items:
                session.show_line(line, lambda line=line: log_line(line, zone if times else None))  # type: ignore[misc]
            wrote += len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
        if not wrote:
            session.note(NO_LINES)
        if page.truncated:
            session.note("It wrote more than is kept.")
        if found.status in {"ready", "waiting", "running"}:
            session.note(f"It is {found.status}: -f waits for more.")
        return
    wrote = 0
    with note_on_interrupt(found):
        if found.status in {"ready", "waiting"}:
            session.note(
                f"{called(found)} is {found.status}. Its lines come when it starts; Ctrl-C leaves it alone."
            )
        for each in session.client.runs.follow_logs(found.id):
            if isinstance(each, LogEndOut):
                if not wrote:
                    session.note(NO_LINES)
                session.note(f"{called(found)}: {each.status}")
                if each.status != "succeeded":
                    raise typer.Exit(1)
            else:
                wrote += 1
                session.show_line(each, lambda line=each: log_line(line, zone if times else None))  # type: ignore[misc]


@app.command()
@api_command
def retry(
    session: Session,
    run: RunRef,
    given: Annotated[
        str | None, typer.Option("--input", help="JSON object laid over its input, or @FILE.", metavar="JSON")
    ] = None,
    override: Annotated[bool, typer.Option("--override", help="Even while a freeze holds the job.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it fails.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Do a finished run again, as a new run."""
    from foliot.cli.dry_rendering import tried_run
    from foliot.cli.run_rendering import run_line

    found = find_run(session.client, run)
    overlay = None if given is None else parse_json_object(given, "--input")
    if dry_run:
        tried = session.client.runs.dry_run.retry(found.id, input=overlay, override=override)
        session.show(tried, lambda: tried_run(tried, "Would make"))
        return
    made = session.client.runs.retry(found.id, input=overlay, override=override)
    if wait:
        made = wait_for_run(session, made)
    session.show(made, lambda: run_line(made, "Retrying" if not wait else "Retried", session.now))
    if wait and made.status != "succeeded":
        raise typer.Exit(1)


@app.command()
@api_command
def cancel(
    session: Session,
    run: RunRef,
    reason: Annotated[str | None, typer.Option(help="Why.", metavar="TEXT")] = None,
    force: Annotated[bool, typer.Option("--force", help="Take it from its worker at once.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """End a run. One that is running is asked to stop."""
    from foliot.cli.dry_rendering import tried_run
    from foliot.cli.run_rendering import run_line

    found = find_run(session.client, run)
    if dry_run:
        tried = session.client.runs.dry_run.cancel(found.id, reason=reason, force=force)
        session.show(tried, lambda: tried_run(tried, "Would cancel"))
        return
    if found.status == "running":
        confirm(f"{found.job_name} #{found.number} is running. Cancel it?", yes=yes)
    ended = session.client.runs.cancel(found.id, reason=reason, force=force)
    said = "Cancelled" if ended.status == "cancelled" else "Asked to stop:"
    session.show(ended, lambda: run_line(ended, said, session.now))
