"""`foliot audit list`: who did what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.job_lookup import job_called
from foliot.cli.members import member_called
from foliot.cli.paging import All, Cursor, Limit, gathered
from foliot.cli.session import Form, Here, asking
from foliot.cli.times import local_zone, read_moment
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.wire.audit import AuditOut

MOST_IDS = 40  # in one filter
app = typer.Typer(help="The audit: who did what, when, and from where.", no_args_is_help=True)


@app.command("list")
@asking
def list_audit(
    here: Here,
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
    about = thing if job is None else f"job:{job_called(here.client, job).id}"
    who = None if actor is None else _actor(here, actor)
    zone = local_zone()
    first, last = (
        None if text is None else read_moment(text, here.now, zone, flag=flag, past=True)
        for text, flag in ((since, "--since"), (until, "--until"))
    )
    found, next_cursor, _ = gathered(
        lambda n, at: here.client.audit(
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
    here.show_list(found, lambda: audit_list(found, _job_names(here, found), zone), next_cursor=next_cursor)
    if next_cursor and here.form is Form.TABLE:
        here.note("There are more: --all, or --limit N.")


def _job_names(here: Here, entries: list[AuditOut]) -> dict[str, str]:
    """Names for the ids of jobs that are still there."""
    ids = list(dict.fromkeys(each.object.id for each in entries if each.object.kind == "job"))
    pieces = (ids[at : at + MOST_IDS] for at in range(0, len(ids), MOST_IDS))
    found = (job for piece in pieces for job in here.client.jobs.each(q=f"id:{','.join(piece)}"))
    return {str(job.id): job.name for job in found}


def _actor(here: Here, called: str) -> str:
    """An id, as the API wants it. What is no member's name may be a word for Foliot's own doing."""
    if called == "me":
        return str(here.client.me().principal.id)
    try:
        return str(member_called(here.client, called).id)
    except NotFound:
        return called
