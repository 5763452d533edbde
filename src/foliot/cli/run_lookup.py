"""How people name a run: its id, or its job and number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.job_lookup import job_called
from foliot.domain.errors import NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.runs import RunOut

RunRef = Annotated[
    str, typer.Argument(metavar="RUN", help="Its id, or its job and number: hello#12.", show_default=False)
]
_NUMBERED = re.compile(r"(.+)#(\d{1,12})", re.DOTALL | re.ASCII)


def run_called(client: Client, called: str) -> RunOut:
    """By id; or by its job and the number that lists show."""
    named = _NUMBERED.fullmatch(called.strip())
    if named is None:
        return client.runs.get(called.strip())
    job, number = job_called(client, named[1]), int(named[2])
    for run in client.jobs.each_run(job.id, q=f"number:{number}"):
        return client.runs.get(run.id)
    raise NotFound(
        f'"{job.name}" has no run #{number}.', hint=f'See them with foliot jobs history "{job.name}".'
    )
