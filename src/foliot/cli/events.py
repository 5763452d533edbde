"""`foliot events`: what happens in the workspace, as it happens."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from foliot.cli.lookup import find_job, principal_names
from foliot.cli.session import OutputFormat, Session, api_command
from foliot.cli.times import local_zone


@api_command
def events(
    session: Session,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="As always: it goes on until Ctrl-C.")
    ] = True,
    kind: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only these: run.failed, or a noun: job, run, freeze.", metavar="KIND"),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only about this job.", metavar="JOB")] = None,
    after: Annotated[
        str | None,
        typer.Option(help="Go on behind this event of the last hour, instead of from now on.", metavar="ID"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Stop after so many.", metavar="N")
    ] = None,
) -> None:
    """Follow what happens: a line for each event from now on, until Ctrl-C. With -o json a line is a JSON object."""
    from foliot.cli.event_rendering import event_line

    only = None if job is None else find_job(session.client, job).id
    zone = local_zone()
    who = principal_names(session.client) if session.format is OutputFormat.TABLE else {}
    if limit is None:
        session.note("Following. Ctrl-C ends it.")
    coming = session.client.events(types=",".join(kind) if kind else None, job=only, last_event_id=after)
    for event in islice(coming, limit):
        session.show_line(event, lambda event=event: event_line(event, who, zone))  # type: ignore[misc]
