"""`foliot jobs create`."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.jobs.flags import JobFlags, job_flags
from foliot.cli.session import DryRun, Session, api_command
from foliot.cli.times import local_zone


@api_command
@job_flags
def create(
    session: Session,
    name_first: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="The name of the job; --name says the same.", show_default=False
        ),
    ] = None,
    *,
    flags: JobFlags,
    disabled: Annotated[bool, typer.Option("--disabled", help="Create it disabled, until resumed.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Create a job. Say when with exactly one of --schedule, --every, --at, --when or --manual, and what with --http,
    --python or --type.
    """
    from foliot.cli.jobs.rendering import created
    from foliot.cli.jobs.trial_rendering import trial

    job = flags.new_job(name_first, session.now, local_zone())
    if disabled:
        job["enabled"] = False
    if dry_run:
        tried = session.client.jobs.dry_run.create(job)
        session.show(tried, lambda: trial(f"Would create {job['name']}", tried, session.now, is_new=True))
        return
    made = session.client.jobs.create(job)
    session.show(made, lambda: created(made, session.now))
