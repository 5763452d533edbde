"""`foliot jobs create|edit|revisions|revert`: define a job by flags or in an editor, and go back to a revision."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.jobs.dry_run import job_dry_run_page
from foliot.cli.jobs.flags import JobFlags, job_flags
from foliot.cli.jobs.views import created_page, warning_lines
from foliot.cli.lookup import JobRef, find_job, principal_names
from foliot.cli.session import FIRST_20, DryRun, Paging, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, GREEN, RED, Block, Column, Table, line, stack, styled
from foliot.cli.times import local_time_relative, local_zone, relative

if TYPE_CHECKING:
    from foliot.sdk.sync.plan import JobChange
    from foliot.wire.dry_run import DryRunOut
    from foliot.wire.jobs import JobOut, RevisionOut

Note = Annotated[str | None, typer.Option(help="Why; stored with the revision.", metavar="TEXT")]
Force = Annotated[bool, typer.Option("--force", help="Even if code manages the job and may change it back.")]


@api_command
@job_flags
def create(
    session: Session,
    name_first: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name of the job, like --name.", show_default=False),
    ] = None,
    *,
    flags: JobFlags,
    disabled: Annotated[bool, typer.Option("--disabled", help="Create it disabled, until resumed.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Create a job. Its schedule is one of --schedule, --every, --at, --when or --manual; its work is --http,
    --python or --type.
    """
    job = flags.new_job(session.client, name_first, session.now, local_zone())
    if disabled:
        job["enabled"] = False
    if dry_run:
        tried = session.client.jobs.dry_run.create(job)
        summary = f"Would create {job['name']}"
        session.show(tried, lambda: job_dry_run_page(summary, tried, session.now, is_new=True))
        return
    made = session.client.jobs.create(job)
    session.show(made, lambda: created_page(made, session.now))


@api_command
@job_flags
def edit(
    session: Session,
    job: JobRef,
    *,
    flags: JobFlags,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Disable the job, or enable a disabled one.")
    ] = None,
    note: Note = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Change a job by flags; without any, edit the whole job as YAML in $EDITOR.

    If someone else changed the job meanwhile, the edit is refused and no change is lost.
    """
    found = find_job(session.client, job)
    changes = flags.patch(session.client, session.now, local_zone())
    if enabled is not None:
        changes["enabled"] = enabled
    if not changes:
        _edit_in_editor(session, found, note, force=force)
        return
    if dry_run:
        tried = session.client.jobs.dry_run.patch(found.id, changes, revision=found.revision, force=force)
        session.show(tried, lambda: edit_dry_run_page(found, tried, session.now))
        return
    after = session.client.jobs.patch(found.id, changes, revision=found.revision, note=note, force=force)
    session.show(after, lambda: changes_page(found, after, session.now))


@api_command
def revisions(session: Session, job: JobRef, paging: Paging = FIRST_20) -> None:
    """List the revisions of a job, newest first: who made it, when, why, and what changed."""
    found = find_job(session.client, job)
    listed = paging.fetch(session.client.jobs.revisions, found.id)
    session.show_list(
        listed,
        lambda: revision_list(listed.items, found, principal_names(session.client), session.now),
    )


@api_command
def revert(
    session: Session,
    job: JobRef,
    revision: Annotated[int, typer.Argument(min=1, help="Number from `foliot jobs revisions`.")],
    note: Note = None,
    force: Force = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Revert a job to an earlier revision, as a new revision."""
    found = find_job(session.client, job)
    if dry_run:
        tried = session.client.jobs.dry_run.revert(found.id, revision, force=force)
        session.show(tried, lambda: edit_dry_run_page(found, tried, session.now))
        return
    confirm(f'Revert "{found.name}" from revision {found.revision} to {revision}?', yes=yes)
    after = session.client.jobs.revert(found.id, revision, note=note, force=force)
    session.show(after, lambda: changes_page(found, after, session.now))


def changes_page(before: JobOut, after: JobOut, now: datetime) -> Block:
    """Show what an edit changed, field by field, and the next time."""
    from foliot.sdk.sync.plan import differences

    is_switched = before.enabled != after.enabled
    if before.revision == after.revision and not is_switched:
        return styled(f"{after.name} is unchanged.")
    following = ""
    if after.next_run_at is not None:
        following = f" Next: {local_time_relative(after.next_run_at, after.schedule.timezone, now)}."
    return stack(
        line(("Changed", BOLD), f" {after.name}: revision {after.revision}.{following}"),
        change_table(differences(_definition(before), _definition(after))),
        *warning_lines(after.warnings),
    )


def edit_dry_run_page(job: JobOut, tried: DryRunOut, now: datetime) -> Block:
    """Show the fields that would change, then the effect on upcoming runs."""
    from foliot.sdk.sync.plan import differences

    fields = None
    if tried.job is not None:
        fields = change_table(differences(_definition(job), _definition(tried.job)))
    return stack(fields, job_dry_run_page(f"Would change {job.name}", tried, now))


def change_table(changes: Iterable[JobChange]) -> Table[JobChange]:
    """Leave out fields that follow from others: the schedule's words, and the anchor of a new interval."""
    changes = list(changes)
    is_new_interval = any(each.pointer == "/schedule/every" for each in changes)
    derived = {"/schedule/words", "/schedule/anchor"} if is_new_interval else {"/schedule/words"}
    columns: list[Column[JobChange]] = [
        Column("field", lambda each: each.pointer),
        Column("before", lambda each: _format_value(each.before), RED, wrap=True),
        Column("", lambda each: "->", DIM),
        Column("after", lambda each: _format_value(each.after), GREEN, wrap=True),
    ]
    rows = [each for each in changes if each.pointer not in derived]
    return Table(columns, rows, indent=2, show_titles=False)


def revision_list(
    revisions: Sequence[RevisionOut], job: JobOut, names: Mapping[str, str], now: datetime
) -> Block:
    from foliot.sdk.sync.plan import JobChange

    blocks: list[Block] = []
    for each in revisions:
        heading = line(
            (f"revision {each.revision}", BOLD),
            "  (in force)" if each.revision == job.revision else "",
            (f"  {relative(each.at - now)} by {names.get(each.actor, each.actor)}", DIM),
            f"  {each.note}" if each.note else "",
        )
        changes = change_table(JobChange(one.path, one.before, one.after) for one in each.changes)
        blocks += [heading, changes]
    return stack(*blocks)


def _definition(job: JobOut) -> dict[str, Any]:
    from foliot.wire.jobs import JobFields

    return job.model_dump(mode="json", include={*JobFields.model_fields, "schedule", "enabled"})


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _edit_in_editor(session: Session, job: JobOut, note: str | None, *, force: bool) -> None:
    from foliot.cli.jobs.editor import edit_text, job_to_text, text_to_job

    def save(text: str) -> JobOut:
        return session.client.jobs.replace(
            job.id, text_to_job(text, job), revision=job.revision, note=note, force=force
        )

    saved = edit_text(job_to_text(job), save)
    if saved is None:
        session.note("Nothing was changed.")
    after = saved or job
    session.show(after, lambda: changes_page(job, after, session.now))
