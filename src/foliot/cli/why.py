"""`foliot why`, which is also `foliot jobs why`: of a job at any time, or of one run."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from foliot.cli.job_lookup import job_called
from foliot.cli.run_lookup import run_called
from foliot.cli.session import Here, asking
from foliot.cli.times import read_moment

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_NUMBERED = re.compile(r".+#\d+", re.ASCII | re.DOTALL)


@asking
def why(
    here: Here,
    subject: Annotated[
        str, typer.Argument(metavar="JOB|RUN", help="A job by id or name, or a run by id or as JOB#12.")
    ],
    at: Annotated[
        str | None,
        typer.Argument(
            metavar="TIME",
            help="On the job's own clock: 02:30, 2026-11-14 02:30, 2h (ago). Default: its last.",
        ),
    ] = None,
    at_flag: Annotated[str | None, typer.Option("--at", help="The same as TIME.", metavar="TIME")] = None,
) -> None:
    """Why it ran, did not run, will not run, or waits; and what to do about it."""
    from foliot.cli.run_rendering import explanation
    from foliot.sdk import NotFound

    asked = at or at_flag
    told = None
    if asked is None and _NUMBERED.fullmatch(subject):
        told = here.client.runs.explain(run_called(here.client, subject).id)
    elif asked is None and _ID.fullmatch(subject):
        try:
            told = here.client.runs.explain(subject)
        except NotFound:
            told = None  # then it is a job's
    if told is None:
        job = job_called(here.client, subject)
        moment = None
        if asked is not None:
            moment = read_moment(asked, here.now, job.schedule.timezone, flag="TIME", past=True)
        told = here.client.jobs.explain(job.id, at=moment)
    found = told
    here.show(found, lambda: explanation(found))
