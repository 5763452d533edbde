"""`foliot audit list`: who changed what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import find_job
from foliot.cli.members import find_member
from foliot.cli.session import FIRST_20, Paging, Session, api_command
from foliot.cli.tables import DIM, SHORT_ID, Column, Table
from foliot.cli.times import load_zone, local_zone, parse_time
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.wire.audit import AuditOut

MAX_IDS_PER_FILTER = 40
MAX_FIELDS = 3  # named in a row
app = typer.Typer(help="Audit log: who did what, when, and from where.", no_args_is_help=True)


@app.command("list")
@api_command
def list_audit(
    session: Session,
    actor: Annotated[
        str | None,
        typer.Option(help="Only by this member (name, email or id), `me`, or engine.", metavar="WHO"),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(help="Only this action: job.paused, or job for all of jobs.", metavar="ACTION"),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only about this job.", metavar="JOB")] = None,
    target: Annotated[
        str | None,
        typer.Option("--object", help="Only about a kind, or kind:id: freeze, key:ID.", metavar="OBJECT"),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Since: 24h, 2026-11-01.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Until.", metavar="TIME")] = None,
    installation: Annotated[
        bool,
        typer.Option("--installation", help="Entries that belong to no workspace; only for system keys."),
    ] = False,
    paging: Paging = FIRST_20,
) -> None:
    """List changes, newest first: when, by whom, what. -o json has the values before and after."""
    if job is not None and target is not None:
        raise Invalid("Use --job or --object, not both.", hint="--job NAME is short for --object job:ID.")
    about = target if job is None else f"job:{find_job(session.client, job).id}"
    who = None if actor is None else _actor_id(session, actor)
    zone = local_zone()
    first, last = (
        None if text is None else parse_time(text, session.now, zone, flag=flag, past=True)
        for text, flag in ((since, "--since"), (until, "--until"))
    )
    found = paging.fetch(
        session.client.audit,
        actor=who,
        action=action,
        object=about,
        since=first,
        until=last,
        installation=installation,
    )
    session.show_list(found, lambda: audit_table(found.items, _job_names(session, found.items), zone))


def audit_table(entries: Sequence[AuditOut], job_names: Mapping[str, str], zone: str) -> Table[AuditOut]:
    columns: list[Column[AuditOut]] = [
        Column("AT", lambda each: each.at.astimezone(load_zone(zone)).strftime("%d %b %H:%M:%S")),
        Column("WHO", lambda each: each.actor.name or each.actor.id, wrap=True),
        Column("ACTION", lambda each: each.action),
        Column("WHAT", lambda each: _object_name(each, job_names), wrap=True),
        Column("CHANGED", _changed_fields, wrap=True),
        Column("FROM", lambda each: each.address or "-", DIM, drop=1),
    ]
    return Table(columns, entries, empty="No entries.")


def _object_name(entry: AuditOut, job_names: Mapping[str, str]) -> str:
    if entry.object.id in job_names:
        return job_names[entry.object.id]
    for values in (entry.after, entry.before):
        for field in ("name", "slug"):
            if values and isinstance(values.get(field), str):
                return str(values[field])
    return f"{entry.object.kind} {entry.object.id[:SHORT_ID]}"


def _changed_fields(entry: AuditOut) -> str:
    """Name the fields of a change. For a creation or a deletion, the action says it all."""
    from foliot.sdk.sync.plan import differences

    if not entry.before or not entry.after:
        return ""
    names = [
        each.pointer.removeprefix("/").removeprefix("definition/").removeprefix("spec/")
        for each in differences(entry.before, entry.after)
        if each.pointer != "/revision"
    ]
    return ", ".join(names[:MAX_FIELDS]) + (" …" if len(names) > MAX_FIELDS else "")


def _job_names(session: Session, entries: Sequence[AuditOut]) -> dict[str, str]:
    """Return the names of jobs that still exist, by id."""
    ids = list(dict.fromkeys(each.object.id for each in entries if each.object.kind == "job"))
    batches = (ids[at : at + MAX_IDS_PER_FILTER] for at in range(0, len(ids), MAX_IDS_PER_FILTER))
    found = (job for batch in batches for job in session.client.jobs.each(q=f"id:{','.join(batch)}"))
    return {str(job.id): job.name for job in found}


def _actor_id(session: Session, ref: str) -> str:
    """Return the member's id; other words, such as `engine`, unchanged."""
    if ref == "me":
        return str(session.client.me().principal.id)
    try:
        return str(find_member(session.client, ref).id)
    except NotFound:
        return ref
