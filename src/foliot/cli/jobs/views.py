"""`foliot jobs list|show|status|next|history`: what there is, how it goes, when it runs and what it did."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.choices import JobStatusChoice
from foliot.cli.lookup import JobRef, find_job
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import OutputFormat, Session, api_command

Several = list[str] | None
ILL = "failures:>0 status:active,paused,failed"  # what somebody should look at
MOST_ILL = 20  # of those that are shown one by one


@api_command
def list_jobs(
    session: Session,
    q: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILTER", help='Such as status:failed tag:billing since:24h "part of a name".'
        ),
    ] = None,
    status: Annotated[
        list[JobStatusChoice] | None, typer.Option(help="Only these; archived ones only if named.")
    ] = None,
    tag: Annotated[Several, typer.Option(help="Only with one of these tags.", metavar="TAG")] = None,
    type: Annotated[Several, typer.Option(help="Only of these types.", metavar="TYPE")] = None,  # noqa: A002
    queue: Annotated[Several, typer.Option(help="Only of these queues.", metavar="QUEUE")] = None,
    owner: Annotated[Several, typer.Option(help="Only of these owners; `me` is you.", metavar="WHO")] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Only disabled ones.")] = False,
    sort: Annotated[
        str | None,
        typer.Option(help="created_at, name or next_run_at; -name turns it round.", metavar="FIELD"),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """List jobs: state, name, schedule, what came of the last run, when the next one is."""
    from foliot.cli.jobs.rendering import job_list

    states = [each.value for each in status or ()] + (["disabled"] if disabled else [])
    jobs, next_cursor, total = fetch_pages(
        lambda n, at: session.client.jobs.list(
            q=" ".join(q) if q else None,
            status=states or None,  # type: ignore[arg-type]  # JobStatus holds the words of the wire
            tag=tag,
            type=type,
            queue=queue,
            owner=owner,
            sort=sort,
            count=True if session.format is OutputFormat.TABLE and at is None else None,
            limit=n,
            cursor=at,
        ),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(jobs, lambda: job_list(jobs, session.now, total=total), next_cursor=next_cursor)
    if not jobs and not (q or states or tag or type or queue or owner):
        session.note(
            'Make one: foliot jobs create --name hello --python builtins:print --when "every 10 minutes"'
        )
    if next_cursor and session.format is OutputFormat.TABLE:
        session.note("There are more: --all, or --limit N.")


@api_command
def show(
    session: Session,
    job: JobRef,
    n: Annotated[int, typer.Option("-n", min=1, max=20, help="Next times.")] = 3,
) -> None:
    """Show one job: its schedule in a sentence, its next times, its record, its rules."""
    from foliot.cli.jobs.rendering import job_page

    found = find_job(session.client, job)
    times = session.client.jobs.next(found.id, n).items if session.format is OutputFormat.TABLE else []
    session.show(found, lambda: job_page(found, session.now, times))


@api_command
def next_times(
    session: Session,
    job: JobRef,
    n: Annotated[int, typer.Option("-n", min=1, max=200, help="How many.", metavar="N")] = 5,
) -> None:
    """When it runs next: on its own wall clock, from now, and in UTC."""
    from foliot.cli.jobs import rendering

    found = find_job(session.client, job)
    times = session.client.jobs.next(found.id, n)
    session.show(times, lambda: rendering.next_times(times.items, found.schedule.timezone, session.now))
    if not times.items:
        session.note(
            f"It is {found.status}." if found.status != "active" else f"foliot jobs why {found.id} says more."
        )


@api_command
def history(
    session: Session, job: JobRef, limit: Limit = 20, cursor: Cursor = None, everything: All = False
) -> None:
    """What became of its planned times, newest first: what ran, what was skipped and why."""
    from foliot.cli.run_rendering import run_list

    found = find_job(session.client, job)
    runs, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.jobs.runs(found.id, limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(runs, lambda: run_list(runs, session.now, of_one_job=True), next_cursor=next_cursor)
    if next_cursor and session.format is OutputFormat.TABLE:
        session.note("There are more: --all, or --limit N.")


@api_command
def status(session: Session) -> None:
    """The whole workspace in a few lines: is it well, what needs a look, what is held, what comes next."""
    from foliot.cli.jobs.overview import overview

    stats = session.client.stats()
    if session.format is not OutputFormat.TABLE:
        session.show(stats, lambda: "")
        return
    ill = session.client.jobs.list(q=ILL, limit=MOST_ILL, count=True)
    session.draw(
        overview(
            stats,
            ill.items,
            session.client.workers().items,
            session.client.freezes.list().items,
            session.now,
            more_ill=getattr(ill, "total", len(ill.items)) - len(ill.items),
        )
    )
