"""`foliot why`, also `foliot jobs why`: explain a job at any time, or one run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from foliot.cli.lookup import find_job, find_run, is_id, is_numbered_run
from foliot.cli.runs import run_duration, run_name, run_status
from foliot.cli.session import Session, view_command
from foliot.cli.tables import (
    BOLD,
    DIM,
    GREEN,
    RED,
    RUN_MARKS,
    YELLOW,
    Block,
    line,
    stack,
    status_mark,
    styled,
)
from foliot.cli.times import parse_past_stretch, parse_past_time, parse_time

if TYPE_CHECKING:
    from foliot.wire.reports import ExplanationOut

_LAST_RUN = frozenset({"last run", "the last run", "last time", "last"})
_STYLES = {
    "ran": GREEN,
    "will_run": GREEN,
    "running": YELLOW,
    "waiting": YELLOW,
    "skipped": RED,
    "unrecorded": RED,
    "will_not_run": RED,
    "will_wait": YELLOW,
}


@view_command
def why(
    session: Session,
    subject: Annotated[
        str, typer.Argument(metavar="JOB|RUN", help="Job by name or id, or run by id or JOB#12.")
    ],
    at: Annotated[
        str | None,
        typer.Argument(
            metavar="TIME",
            help="In the job's time zone: 02:30, 2026-11-14 02:30, 2h (ago), yesterday, last night, last run. Default: its last.",
        ),
    ] = None,
    at_flag: Annotated[str | None, typer.Option("--at", help="The same as TIME.", metavar="TIME")] = None,
) -> None:
    """Explain why a job ran, did not run, will not run, or waits; and what to do about it."""
    found = _explain(session, subject, at or at_flag)
    session.show(found, lambda: explanation_page(found))


def _explain(session: Session, subject: str, at: str | None) -> ExplanationOut:
    from foliot.sdk import NotFound

    if at is None and is_numbered_run(subject):
        return session.client.runs.explain(find_run(session.client, subject).id)
    if at is None and is_id(subject):
        try:
            return session.client.runs.explain(subject)
        except NotFound:
            pass  # the id of a job
    job = find_job(session.client, subject)
    if at is None:
        return session.client.jobs.explain(job.id)
    zone = job.schedule.timezone
    if " ".join(at.lower().split()) in _LAST_RUN:
        runs = session.client.jobs.runs(job.id, limit=1).items
        if runs:
            return session.client.runs.explain(runs[0].id)
        found = session.client.jobs.explain(job.id)
        return found.model_copy(update={"sentence": f"{job.name} has not run yet. {found.sentence}"})
    stretch = parse_past_stretch(at, session.now, zone)
    if stretch is not None:
        return _explain_stretch(session, job.id, *stretch)
    moment = parse_past_time(at, session.now, zone)
    if moment is None:
        moment = parse_time(at, session.now, zone, flag="TIME", past=True)
    return session.client.jobs.explain(job.id, at=moment)


def _explain_stretch(session: Session, job_id: UUID, start: datetime, end: datetime) -> ExplanationOut:
    """Explain the last planned time within a stretch; if there is none, its end."""
    last = min(end, session.now) if start <= session.now else end
    found = session.client.jobs.explain(job_id, at=last - timedelta(seconds=1))
    before = None if found.nearest is None else found.nearest.before
    if before is None or before.planned_for < start or before.planned_for == found.at:
        return found
    return session.client.jobs.explain(job_id, at=before.planned_for)


def explanation_page(found: ExplanationOut) -> Block:
    """Show the sentence, further facts, and what to do next. For a plain success, one line."""
    run = found.run
    if found.verdict == "ran" and run is not None and run.status == "succeeded" and not found.what_next:
        planned = f", planned for {run.planned_local:%a %d %b %Y %H:%M:%S},"
        mark = status_mark(run.status, RUN_MARKS)
        return line(mark, f" {run_name(run)}{planned} succeeded in {run_duration(run)}.")
    run_line = None
    if run is not None and found.verdict in {"ran", "running", "skipped", "waiting"}:
        run_line = line(("  run      ", DIM), f"{run_name(run)}  ", run_status(run))
    return stack(
        styled(found.sentence, _STYLES.get(found.verdict, "")),
        *(styled(f"  {fact}") for fact in found.facts),
        run_line,
        *(line(("  do next  ", BOLD), each) for each in found.what_next),
    )
