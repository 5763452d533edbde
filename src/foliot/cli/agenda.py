"""`foliot agenda`: everything that is planned, in the order it starts."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.lookup import find_job
from foliot.cli.session import Session, api_command
from foliot.cli.times import local_zone, parse_time


@api_command
def agenda(
    session: Session,
    start: Annotated[str | None, typer.Option("--from", help="Default: now.", metavar="TIME")] = None,
    until: Annotated[
        str | None, typer.Option(help="06:00, 3d, 2026-11-20. Default: a day later.", metavar="TIME")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only this job.", metavar="JOB")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.", metavar="TAG")] = None,
    queue: Annotated[str | None, typer.Option(help="Only jobs of this queue.", metavar="QUEUE")] = None,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", "--tz", help="Show times there. Default: this machine's.", metavar="ZONE"),
    ] = None,
) -> None:
    """What will run, when, for how long, and what will be skipped or held."""
    from foliot.cli.agenda_rendering import agenda_page

    zone = timezone or local_zone()
    begin = None if start is None else parse_time(start, session.now, zone, flag="--from")
    end = None if until is None else parse_time(until, begin or session.now, zone, flag="--until")
    only = None if job is None else find_job(session.client, job).id
    plans = session.client.agenda(start=begin, end=end, job=only, tag=tag, queue=queue)
    session.show(plans, lambda: agenda_page(plans, zone, session.now))
