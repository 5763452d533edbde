"""`foliot jobs pause|resume|disable|run|delete`: control a job."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.input_files import parse_json_object
from foliot.cli.jobs.dry_run import job_dry_run_page
from foliot.cli.jobs.views import pause_end, result_line
from foliot.cli.lookup import JobRef, find_archived_job, find_job
from foliot.cli.output import pluralize
from foliot.cli.progress import wait_for_run
from foliot.cli.runs import run_dry_run_page, run_line
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.tables import styled
from foliot.cli.times import local_zone, parse_time

Reason = Annotated[str | None, typer.Option(help="Why; shown with the job.", metavar="TEXT")]


@api_command
def pause(
    session: Session,
    job: JobRef,
    reason: Reason = None,
    until: Annotated[
        str | None, typer.Option(help="Resume automatically at: 2h, 18:00, tomorrow at 9am.", metavar="TIME")
    ] = None,
    drop_queued: Annotated[
        bool, typer.Option("--drop-queued", help="Skip scheduled runs that no worker has yet.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Pause a job: its schedule starts no run until it is resumed. Runs under way continue; queued ones wait for the resume.

    The pause of a paused job gets the new end.
    """
    found = find_job(session.client, job)
    at = None if until is None else parse_time(until, session.now, local_zone(), flag="--until")
    if dry_run:
        tried = session.client.jobs.dry_run.pause(found.id, reason=reason, until=at, drop_queued=drop_queued)
        session.show(tried, lambda: job_dry_run_page(f"Would pause {found.name}", tried, session.now))
        return
    paused = session.client.jobs.pause(found.id, reason=reason, until=at, drop_queued=drop_queued)
    if found.status == "paused":  # a second pause changes the end of the first
        is_same = (paused.paused_until, paused.status_reason) == (found.paused_until, found.status_reason)
        change = "as before" if is_same else "changed"
        session.show(
            paused, lambda: styled(f"{found.name} is paused {pause_end(paused, session.now)} ({change}).")
        )
    else:
        session.show(paused, lambda: result_line(paused, "Paused", session.now))
    if until is None:
        session.note(f'Resume it with: foliot jobs resume "{found.name}"')


@api_command
def resume(
    session: Session,
    job: JobRef,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Run the missed times, as the misfire policy says.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Resume a job that is paused, disabled or failed."""
    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.resume(found.id, catch_up=catch_up)
        session.show(tried, lambda: job_dry_run_page(f"Would resume {found.name}", tried, session.now))
        return
    resumed = session.client.jobs.resume(found.id, catch_up=catch_up)
    session.show(resumed, lambda: result_line(resumed, "Resumed", session.now))


@api_command
def disable(session: Session, job: JobRef, reason: Reason = None, dry_run: DryRun = False) -> None:
    """Disable a job until it is resumed."""
    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.disable(found.id, reason=reason)
        session.show(tried, lambda: job_dry_run_page(f"Would disable {found.name}", tried, session.now))
        return
    disabled = session.client.jobs.disable(found.id, reason=reason)
    session.show(disabled, lambda: result_line(disabled, "Disabled", session.now))


@api_command
def run(
    session: Session,
    job: JobRef,
    given: Annotated[
        str | None,
        typer.Option("--input", help="JSON object to merge over its payload, or @FILE.", metavar="JSON"),
    ] = None,
    override: Annotated[bool, typer.Option("--override", help="Even while a freeze holds it.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; exit code 1 if it fails.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Run a job now, regardless of its schedule. If a run is live, the new one waits."""
    found = find_job(session.client, job)
    overlay = None if given is None else parse_json_object(given, "--input")
    if dry_run:
        tried = session.client.jobs.dry_run.run(found.id, input=overlay, override=override)
        session.show(tried, lambda: run_dry_run_page(tried, "Would create"))
        return
    made = session.client.jobs.run(found.id, input=overlay, override=override)
    if wait:
        made = wait_for_run(session, made)
    session.show(made, lambda: run_line(made, "Ran" if wait else "Started"))
    if wait and made.status != "succeeded":
        raise typer.Exit(1)


@api_command
def restore(
    session: Session,
    job: JobRef,
    start: Annotated[bool, typer.Option("--resume", help="Also resume it.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Bring a job back from the archive, with its history. It stays disabled unless --resume."""
    found = find_archived_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.restore(found.id)
        session.show(tried, lambda: job_dry_run_page(f"Would restore {found.name}", tried, session.now))
        return
    restored = session.client.jobs.restore(found.id)
    if start:
        restored = session.client.jobs.resume(found.id)
    session.show(restored, lambda: result_line(restored, "Restored", session.now))
    if not start:
        session.note(f'It is disabled. Resume it with: foliot jobs resume "{found.name}"')


@api_command
def delete(
    session: Session,
    job: JobRef,
    purge: Annotated[bool, typer.Option("--purge", help="Delete it and its history permanently.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Remove it from the jobs that depend on it.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --purge: even while runs are under way.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Archive a job: it never runs again, and its history stays. --purge deletes both."""
    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.delete(found.id, purge=purge, detach=detach, force=force)
        summary = f"Would {'delete' if purge else 'archive'} {found.name}"
        session.show(tried, lambda: job_dry_run_page(summary, tried, session.now))
        return
    action = "Delete it and its whole history" if purge else "Archive it"
    runs = pluralize(found.run_count, "run")
    confirm(f'"{found.name}" ({found.schedule.words}, {runs}). {action}?', yes=yes)
    session.client.jobs.delete(found.id, purge=purge, detach=detach, force=force)
    result = f"{'Deleted' if purge else 'Archived'} {found.name}."
    session.show({"id": str(found.id), "deleted": True, "purged": purge}, lambda: styled(result))
