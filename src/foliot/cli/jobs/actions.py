"""`foliot jobs pause|resume|disable|run|delete`: what people do with a job that is there."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.input_files import object_in
from foliot.cli.job_lookup import JobRef, job_called
from foliot.cli.output import counted
from foliot.cli.session import DryRun, Here, Yes, asking, confirm
from foliot.cli.times import local_zone, read_moment

Reason = Annotated[str | None, typer.Option(help="Why, for whoever finds it so.", metavar="TEXT")]


@asking
def pause(
    here: Here,
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

    found = job_called(here.client, job)
    at = None if until is None else read_moment(until, here.now, local_zone(), flag="--until")
    if dry_run:
        tried = here.client.jobs.dry_run.pause(found.id, reason=reason, until=at)
        here.show(tried, lambda: trial(f"Would pause {found.name}", tried, here.now))
        return
    paused = here.client.jobs.pause(found.id, reason=reason, until=at)
    here.show(paused, lambda: moved(paused, "Paused", here.now))
    if until is None:
        here.note(f'Back to work: foliot jobs resume "{found.name}"')


@asking
def resume(
    here: Here,
    job: JobRef,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Run what went by meanwhile, as its misfire policy says.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Back to work, from paused, disabled or failed."""
    from foliot.cli.jobs.rendering import moved
    from foliot.cli.jobs.trial_rendering import trial

    found = job_called(here.client, job)
    if dry_run:
        tried = here.client.jobs.dry_run.resume(found.id, catch_up=catch_up)
        here.show(tried, lambda: trial(f"Would resume {found.name}", tried, here.now))
        return
    resumed = here.client.jobs.resume(found.id, catch_up=catch_up)
    here.show(resumed, lambda: moved(resumed, "Resumed", here.now))


@asking
def disable(here: Here, job: JobRef, reason: Reason = None, dry_run: DryRun = False) -> None:
    """Switch it off until somebody resumes it."""
    from foliot.cli.jobs.rendering import moved
    from foliot.cli.jobs.trial_rendering import trial

    found = job_called(here.client, job)
    if dry_run:
        tried = here.client.jobs.dry_run.disable(found.id, reason=reason)
        here.show(tried, lambda: trial(f"Would disable {found.name}", tried, here.now))
        return
    off = here.client.jobs.disable(found.id, reason=reason)
    here.show(off, lambda: moved(off, "Disabled", here.now))


@asking
def run(
    here: Here,
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
    from foliot.cli.progress import until_it_ends
    from foliot.cli.run_rendering import run_line

    found = job_called(here.client, job)
    overlay = None if given is None else object_in(given, "--input")
    if dry_run:
        tried = here.client.jobs.dry_run.run(found.id, input=overlay, override=override)
        here.show(tried, lambda: tried_run(tried, "Would make"))
        return
    made = here.client.jobs.run(found.id, input=overlay, override=override)
    if wait:
        made = until_it_ends(here, made)
    here.show(made, lambda: run_line(made, "Ran" if wait else "Asked for", here.now))
    if wait and made.status != "succeeded":
        raise typer.Exit(1)


@asking
def delete(
    here: Here,
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

    found = job_called(here.client, job)
    if dry_run:
        tried = here.client.jobs.dry_run.delete(found.id, purge=purge, detach=detach, force=force)
        here.show(
            tried, lambda: trial(f"Would {'remove' if purge else 'archive'} {found.name}", tried, here.now)
        )
        return
    what = "Remove it with its whole history" if purge else "Archive it"
    confirm(f'"{found.name}" ({found.schedule.words}, {counted(found.run_count, "run")}). {what}?', yes=yes)
    here.client.jobs.delete(found.id, purge=purge, detach=detach, force=force)
    said = "Removed" if purge else "Archived"
    here.show({"id": str(found.id), "deleted": True, "purged": purge}, lambda: cell(f"{said} {found.name}."))
