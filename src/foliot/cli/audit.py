"""`foliot audit list`: who did what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import find_job
from foliot.cli.members import find_member
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import OutputFormat, Session, api_command
from foliot.cli.times import local_zone, parse_time
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.wire.audit import AuditOut

MOST_IDS = 40  # in one filter
app = typer.Typer(help="The audit: who did what, when, and from where.", no_args_is_help=True)


@app.command("list")
@api_command
def list_audit(
    session: Session,
    actor: Annotated[
        str | None,
        typer.Option(help="Only by this member (name, email or id), `me`, or engine.", metavar="WHO"),
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Only these: job.paused; job is all that begin so.", metavar="ACTION")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only about this job.", metavar="JOB")] = None,
    thing: Annotated[
        str | None,
        typer.Option("--object", help="Only about a kind, or kind:id: freeze, key:ID.", metavar="OBJECT"),
    ] = None,
    since: Annotated[str | None, typer.Option(help="24h, 2026-11-01.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Before then.", metavar="TIME")] = None,
    installation: Annotated[
        bool, typer.Option("--installation", help="What belongs to no workspace, instead; for system keys.")
    ] = False,
    limit: Limit = 20,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """Every change, newest first: when, by whom, what was done to what. -o json has the values before and after."""
    from foliot.cli.audit_rendering import audit_list

    if job is not None and thing is not None:
        raise Invalid("Not both: --job and --object.", hint="--job NAME is short for --object job:ID.")
    about = thing if job is None else f"job:{find_job(session.client, job).id}"
    who = None if actor is None else _actor(session, actor)
    zone = local_zone()
    first, last = (
        None if text is None else parse_time(text, session.now, zone, flag=flag, past=True)
        for text, flag in ((since, "--since"), (until, "--until"))
    )
    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.audit(
            actor=who,
            action=action,
            object=about,
            since=first,
            until=last,
            installation=installation,
            limit=n,
            cursor=at,
        ),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(
        found, lambda: audit_list(found, _job_names(session, found), zone), next_cursor=next_cursor
    )
    if next_cursor and session.format is OutputFormat.TABLE:
        session.note("There are more: --all, or --limit N.")


def _job_names(session: Session, entries: list[AuditOut]) -> dict[str, str]:
    """Names for the ids of jobs that are still there."""
    ids = list(dict.fromkeys(each.object.id for each in entries if each.object.kind == "job"))
    pieces = (ids[at : at + MOST_IDS] for at in range(0, len(ids), MOST_IDS))
    found = (job for piece in pieces for job in session.client.jobs.each(q=f"id:{','.join(piece)}"))
    return {str(job.id): job.name for job in found}


def _actor(session: Session, called: str) -> str:
    """An id, as the API wants it. What is no member's name may be a word for Foliot's own doing."""
    if called == "me":
        return str(session.client.me().principal.id)
    try:
        return str(find_member(session.client, called).id)
    except NotFound:
        return called
