"""`foliot events`: the events of the workspace, as they happen."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import find_job, principal_names
from foliot.cli.session import Session, api_command
from foliot.cli.tables import DIM, GREEN, RED, YELLOW, StyledLine, line
from foliot.cli.times import load_zone, local_zone

if TYPE_CHECKING:
    from foliot.wire.audit import EventOut

KIND_WIDTH = 19  # fits `freeze.turned_on` and the other common kinds
_STYLES = {
    "succeeded": GREEN,
    "failed": RED,
    "timed_out": RED,
    "interrupted": RED,
    "started": YELLOW,
    "retrying": YELLOW,
    "paused": YELLOW,
}


@api_command
def events(
    session: Session,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Has no effect: events always follow.")
    ] = True,
    kind: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only these: run.failed, or a noun: job, run, freeze.", metavar="KIND"),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only about this job.", metavar="JOB")] = None,
    after: Annotated[
        str | None,
        typer.Option(help="Start after this event of the last hour instead of now.", metavar="ID"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Stop after N events.", metavar="N")
    ] = None,
) -> None:
    """Print events as they happen, one a line, until Ctrl-C. With -o json each line is a JSON object."""
    job_id = None if job is None else find_job(session.client, job).id
    zone = local_zone()
    names = principal_names(session.client) if session.is_table else {}
    if limit is None:
        session.note_stream("Following events. Press Ctrl-C to stop.")
    stream = session.client.events(types=",".join(kind) if kind else None, job=job_id, last_event_id=after)
    for event in islice(stream, limit):
        session.show_line(event, lambda event=event: event_line(event, names, zone))  # type: ignore[misc]


def event_line(event: EventOut, names: Mapping[str, str], zone: str) -> StyledLine:
    """`12:00:00  run.failed  hello#12  (http_status, attempt 2, by Ada)`."""
    subject = event.job_name or (str(event.object_id) if event.object_id else "")
    if event.number is not None:
        subject += f"#{event.number}"
    details = [each for each in (event.skip_reason, event.error_code) if each]
    if event.attempt is not None and event.attempt > 1:
        details.append(f"attempt {event.attempt}")
    if event.actor:
        details.append(f"by {names.get(event.actor, event.actor)}")
    return line(
        (f"{event.at.astimezone(load_zone(zone)):%H:%M:%S}  ", DIM),
        (event.kind.ljust(KIND_WIDTH), _STYLES.get(event.kind.partition(".")[2], "")),
        subject,
        (f"  ({', '.join(details)})" if details else "", DIM),
    )
