"""`foliot incidents`: jobs in trouble, from their first failure to their next success."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.lookup import find_job, find_named
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, api_command
from foliot.cli.tables import BOLD, DIM, SHORT_ID, Block, Column, Table, facts, stack, styled
from foliot.cli.times import local_zone, parse_time, relative

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from foliot.sdk import Client
    from foliot.sdk.synchronous.notifications import IncidentWrites
    from foliot.wire.notifications import IncidentOut

app = typer.Typer(help="Incidents: jobs in trouble, and who looks after them.", no_args_is_help=True)
IncidentRef = Annotated[
    str, typer.Argument(metavar="INCIDENT", help="Incident id, or its beginning.", show_default=False)
]


@app.command("list")
@api_command
def list_incidents(
    session: Session,
    closed: Annotated[bool, typer.Option("--closed", help="Include closed ones.")] = False,
    job: Annotated[str | None, typer.Option(help="Only those of this job.", metavar="JOB")] = None,
    paging: Paging = FIRST_50,
) -> None:
    """List open incidents, newest first."""
    job_id = None if job is None else find_job(session.client, job).id
    state = None if closed else "open"
    found = paging.fetch(session.client.incidents.list, state=state, job_id=job_id)
    session.show_list(found, lambda: incident_table(found.items, session.now))


@app.command()
@api_command
def show(session: Session, incident: IncidentRef) -> None:
    """Show an incident."""
    found = find_incident(session.client, incident)
    session.show(found, lambda: incident_page(found, session.now))


@app.command()
@api_command
def ack(session: Session, incident: IncidentRef, dry_run: DryRun = False) -> None:
    """Acknowledge an incident: its reminders stop, its recovery is still sent."""
    _change(session, incident, lambda verbs, found: verbs.acknowledge(found), dry_run=dry_run)


@app.command()
@api_command
def mute(session: Session, incident: IncidentRef, dry_run: DryRun = False) -> None:
    """Send nothing more about an incident, not even its recovery."""
    _change(session, incident, lambda verbs, found: verbs.mute(found), dry_run=dry_run)


@app.command()
@api_command
def unmute(session: Session, incident: IncidentRef, dry_run: DryRun = False) -> None:
    """Send messages about an incident again."""
    _change(session, incident, lambda verbs, found: verbs.unmute(found), dry_run=dry_run)


@app.command()
@api_command
def snooze(
    session: Session,
    incident: IncidentRef,
    until: Annotated[str, typer.Option(help="When it is announced again.", metavar="TIME")],
    dry_run: DryRun = False,
) -> None:
    """Send nothing about an incident until a time."""
    at = parse_time(until, session.now, local_zone(), flag="--until")
    _change(session, incident, lambda verbs, found: verbs.snooze(found, at), dry_run=dry_run)


@app.command()
@api_command
def note(
    session: Session,
    incident: IncidentRef,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Replaces the note; empty removes it.")],
    dry_run: DryRun = False,
) -> None:
    """Write a note, which later messages show."""
    _change(session, incident, lambda verbs, found: verbs.set_note(found, text), dry_run=dry_run)


@app.command()
@api_command
def close(session: Session, incident: IncidentRef, dry_run: DryRun = False) -> None:
    """Close an incident without a success. The next failure opens another."""
    _change(session, incident, lambda verbs, found: verbs.close(found), dry_run=dry_run)


def _change(
    session: Session,
    incident: str,
    change: Callable[[IncidentWrites[IncidentOut, Any], UUID], IncidentOut],
    *,
    dry_run: bool,
) -> None:
    found = find_incident(session.client, incident)
    changed = change(session.client.incidents.dry_run if dry_run else session.client.incidents, found.id)
    session.show(changed, lambda: incident_page(changed, session.now, is_tried=dry_run))


def incident_table(found: Sequence[IncidentOut], now: datetime) -> Table[IncidentOut]:
    columns: list[Column[IncidentOut]] = [
        Column("STATE", lambda each: each.state),
        Column("JOB", lambda each: each.job_name or each.subject, wrap=True),
        Column("SINCE", lambda each: relative(each.opened_at - now)),
        Column("FAILURES", lambda each: each.failures),
        Column("ERROR", lambda each: each.error.message if each.error else each.event, wrap=True),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM),
    ]
    return Table(columns, found, empty="No incidents: no job is in trouble.")


def incident_page(incident: IncidentOut, now: datetime, *, is_tried: bool = False) -> Block:
    error, snoozed = incident.error, incident.snoozed_until
    return stack(
        styled(f"{incident.job_name or incident.subject}: {incident.event.replace('_', ' ')}", BOLD),
        facts(
            (
                ("id", str(incident.id)),
                ("state", incident.state),
                ("since", relative(incident.opened_at - now)),
                ("failures", f"{incident.failures:,}"),
                ("error", f"{error.code}: {error.message}" if error else "none"),
                ("reminders", f"{incident.reminders:,}"),
                ("acknowledged", incident.acknowledged_by),
                ("muted", incident.muted_by),
                ("snoozed", relative(snoozed - now) if incident.state == "snoozed" and snoozed else None),
                ("note", incident.note or None),
            )
        ),
        styled("Nothing was done.") if is_tried else None,
    )


def find_incident(client: Client, ref: str) -> IncidentOut:
    return find_named(client.incidents.each(), ref, "incident", lambda each: each.job_name or each.subject)
