"""`foliot agenda`: everything that is planned, in the order it starts."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.job_lookup import job_called
from foliot.cli.session import Here, asking
from foliot.cli.times import local_zone, read_moment


@asking
def agenda(
    here: Here,
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
    begin = None if start is None else read_moment(start, here.now, zone, flag="--from")
    end = None if until is None else read_moment(until, begin or here.now, zone, flag="--until")
    only = None if job is None else job_called(here.client, job).id
    plans = here.client.agenda(start=begin, end=end, job=only, tag=tag, queue=queue)
    here.show(plans, lambda: agenda_page(plans, zone, here.now))
