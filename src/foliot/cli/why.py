"""`foliot why`, which is also `foliot jobs why`: of a job at any time, or of one run."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from foliot.cli.lookup import find_job, find_run
from foliot.cli.session import Session, api_command
from foliot.cli.times import parse_time

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_NUMBERED = re.compile(r".+#\d+", re.ASCII | re.DOTALL)


@api_command
def why(
    session: Session,
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
        told = session.client.runs.explain(find_run(session.client, subject).id)
    elif asked is None and _ID.fullmatch(subject):
        try:
            told = session.client.runs.explain(subject)
        except NotFound:
            told = None  # then it is a job's
    if told is None:
        job = find_job(session.client, subject)
        moment = None
        if asked is not None:
            moment = parse_time(asked, session.now, job.schedule.timezone, flag="TIME", past=True)
        told = session.client.jobs.explain(job.id, at=moment)
    found = told
    session.show(found, lambda: explanation(found))
