"""`foliot jobs edit|revisions|revert`: change a job by flags or in an editor, see what it was, and go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.jobs.flags import JobFlags, job_flags
from foliot.cli.lookup import JobRef, find_job, principal_names
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.times import local_zone

if TYPE_CHECKING:
    from foliot.wire.jobs import JobOut

Note = Annotated[str | None, typer.Option(help="Why, for whoever reads its revisions.", metavar="TEXT")]
Force = Annotated[
    bool, typer.Option("--force", help="Even if the job is managed by code, which may change it back.")
]


@api_command
@job_flags
def edit(
    session: Session,
    job: JobRef,
    *,
    flags: JobFlags,
    note: Note = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Change what the flags name; without any, the whole job in $EDITOR, as YAML.

    Nobody else's change is lost: where the job was edited meanwhile, this is refused.
    """
    from foliot.cli.jobs.change_rendering import changed, would_change

    found = find_job(session.client, job)
    changes = flags.patch(session.now, local_zone())
    if not changes:
        _in_editor(session, found, note, force=force)
        return
    if dry_run:
        tried = session.client.jobs.dry_run.patch(found.id, changes, revision=found.revision, force=force)
        session.show(tried, lambda: would_change(found, tried, session.now))
        return
    after = session.client.jobs.patch(found.id, changes, revision=found.revision, note=note, force=force)
    session.show(after, lambda: changed(found, after, session.now))


@api_command
def revisions(
    session: Session, job: JobRef, limit: Limit = 20, cursor: Cursor = None, everything: All = False
) -> None:
    """Every definition it had, newest first: who made it so, why, and what that changed."""
    from foliot.cli.jobs.change_rendering import revision_list

    found = find_job(session.client, job)
    listed, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.jobs.revisions(found.id, limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(
        listed,
        lambda: revision_list(listed, found, principal_names(session.client), session.now),
        next_cursor=next_cursor,
    )


@api_command
def revert(
    session: Session,
    job: JobRef,
    revision: Annotated[int, typer.Argument(min=1, help="Which, as `foliot jobs revisions` lists them.")],
    note: Note = None,
    force: Force = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Put an old revision in force again, as a new one."""
    from foliot.cli.jobs.change_rendering import changed, would_change

    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.revert(found.id, revision, force=force)
        session.show(tried, lambda: would_change(found, tried, session.now))
        return
    confirm(f'Put revision {revision} of "{found.name}" in place of {found.revision}?', yes=yes)
    after = session.client.jobs.revert(found.id, revision, note=note, force=force)
    session.show(after, lambda: changed(found, after, session.now))


def _in_editor(session: Session, job: JobOut, note: str | None, *, force: bool) -> None:
    """Refusals come back on top of the text, until it is right or left as it was."""
    from foliot.cli.editor import edited
    from foliot.cli.jobs.change_rendering import changed
    from foliot.cli.jobs.edit_text import from_text, to_text

    before = to_text(job)

    def save(text: str) -> JobOut:
        return session.client.jobs.replace(
            job.id, from_text(text, job), revision=job.revision, note=note, force=force
        )

    after = edited(before, save)
    if after is None:
        session.note("Nothing was changed.")
        after = job
    saved = after
    session.show(saved, lambda: changed(job, saved, session.now))
