"""`foliot jobs pause|resume|disable|run|delete`: what people do with a job that is there."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.input_files import parse_json_object
from foliot.cli.lookup import JobRef, find_job
from foliot.cli.output import pluralize
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.times import local_zone, parse_time

Reason = Annotated[str | None, typer.Option(help="Why, for whoever finds it so.", metavar="TEXT")]


@api_command
def pause(
    session: Session,
    job: JobRef,
    reason: Reason = None,
    until: Annotated[
        str | None, typer.Option(help="Resume by itself then: 2h, 18:00, tomorrow at 9am.", metavar="TIME")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """No run starts by schedule until it is resumed. What runs now runs on."""
    from foliot.cli.jobs.rendering import moved
    from foliot.cli.jobs.trial_rendering import trial

    found = find_job(session.client, job)
    at = None if until is None else parse_time(until, session.now, local_zone(), flag="--until")
    if dry_run:
        tried = session.client.jobs.dry_run.pause(found.id, reason=reason, until=at)
        session.show(tried, lambda: trial(f"Would pause {found.name}", tried, session.now))
        return
    paused = session.client.jobs.pause(found.id, reason=reason, until=at)
    session.show(paused, lambda: moved(paused, "Paused", session.now))
    if until is None:
        session.note(f'Back to work: foliot jobs resume "{found.name}"')


@api_command
def resume(
    session: Session,
    job: JobRef,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Run what went by meanwhile, as its misfire policy says.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Back to work, from paused, disabled or failed."""
    from foliot.cli.jobs.rendering import moved
    from foliot.cli.jobs.trial_rendering import trial

    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.resume(found.id, catch_up=catch_up)
        session.show(tried, lambda: trial(f"Would resume {found.name}", tried, session.now))
        return
    resumed = session.client.jobs.resume(found.id, catch_up=catch_up)
    session.show(resumed, lambda: moved(resumed, "Resumed", session.now))


@api_command
def disable(session: Session, job: JobRef, reason: Reason = None, dry_run: DryRun = False) -> None:
    """Switch it off until somebody resumes it."""
    from foliot.cli.jobs.rendering import moved
    from foliot.cli.jobs.trial_rendering import trial

    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.disable(found.id, reason=reason)
        session.show(tried, lambda: trial(f"Would disable {found.name}", tried, session.now))
        return
    off = session.client.jobs.disable(found.id, reason=reason)
    session.show(off, lambda: moved(off, "Disabled", session.now))


@api_command
def run(
    session: Session,
    job: JobRef,
    given: Annotated[
        str | None,
        typer.Option("--input", help="JSON object laid over its payload, or @FILE.", metavar="JSON"),
    ] = None,
    override: Annotated[bool, typer.Option("--override", help="Even while a freeze holds it.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it fails.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Run it now, whatever its schedule says. Behind a run that is live, it waits."""
    from foliot.cli.dry_rendering import tried_run
    from foliot.cli.progress import wait_for_run
    from foliot.cli.run_rendering import run_line

    found = find_job(session.client, job)
    overlay = None if given is None else parse_json_object(given, "--input")
    if dry_run:
        tried = session.client.jobs.dry_run.run(found.id, input=overlay, override=override)
        session.show(tried, lambda: tried_run(tried, "Would make"))
        return
    made = session.client.jobs.run(found.id, input=overlay, override=override)
    if wait:
        made = wait_for_run(session, made)
    session.show(made, lambda: run_line(made, "Ran" if wait else "Asked for", session.now))
    if wait and made.status != "succeeded":
        raise typer.Exit(1)


@api_command
def delete(
    session: Session,
    job: JobRef,
    purge: Annotated[bool, typer.Option("--purge", help="Remove it with its history, for good.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Take it out of the jobs that depend on it.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --purge: even while runs are under way.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Archive it: nothing of it runs again, and its history stays. --purge removes that too."""
    from foliot.cli.jobs.trial_rendering import trial
    from foliot.cli.tables import cell

    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.delete(found.id, purge=purge, detach=detach, force=force)
        session.show(
            tried, lambda: trial(f"Would {'remove' if purge else 'archive'} {found.name}", tried, session.now)
        )
        return
    what = "Remove it with its whole history" if purge else "Archive it"
    confirm(f'"{found.name}" ({found.schedule.words}, {pluralize(found.run_count, "run")}). {what}?', yes=yes)
    session.client.jobs.delete(found.id, purge=purge, detach=detach, force=force)
    said = "Removed" if purge else "Archived"
    session.show(
        {"id": str(found.id), "deleted": True, "purged": purge}, lambda: cell(f"{said} {found.name}.")
    )
