"""`foliot apply` and `foliot export`: jobs as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from foliot.cli.input_files import read_text
from foliot.cli.jobs.edit import change_table
from foliot.cli.output import pluralize, print_err, print_out
from foliot.cli.progress import track
from foliot.cli.session import OutputFormat, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Block, line, stack, styled
from foliot.domain.errors import Invalid, ManagedByCode

if TYPE_CHECKING:
    from foliot.cli.job_file import JobFile
    from foliot.sdk.sync.plan import JobWriter, SyncPlan
    from foliot.wire.jobs import JobOut

MAX_NAMED = 10


@api_command
def apply(
    session: Session,
    file: Annotated[
        str, typer.Option("-f", "--file", help="YAML or JSON with jobs; - is standard input.", metavar="FILE")
    ],
    plan_only: Annotated[
        bool, typer.Option("--plan", "--dry-run", help="Show what would change; change nothing.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Archive jobs that this file created and no longer contains.")
    ] = False,
    note: Annotated[str | None, typer.Option(help="Why; stored with the revisions.", metavar="TEXT")] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also change jobs that an app's code manages and may change back."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Create and change jobs to match a file. Jobs that are not in the file stay as they are.

    Jobs are matched by name. Applying the same file again changes nothing. Paused jobs stay paused.
    """
    from foliot.cli.job_file import read_job_file
    from foliot.sdk.sync.plan import JobWriter, plan_sync, unique_names

    wanted = read_job_file(read_text(file, "--file"), "standard input" if file == "-" else file)
    jobs = list(track("reading", session.client.jobs.each()))
    names, calendars = unique_names(jobs), _calendar_names(session)
    found = plan_sync(
        wanted.entries,
        jobs,
        names,
        calendars,
        resolve=_schedule_resolver(session),
        is_mine=lambda job: wanted.marker in job.tags,
    )
    if plan_only:
        session.show(
            plan_json(found, applied=False, prune=prune),
            lambda: plan_page(found, prune=prune, applied=False),
        )
        return
    if not force:
        _refuse_managed(found)
    if prune and found.gone:
        listed = ", ".join(f'"{job.name}"' for job in found.gone[:MAX_NAMED])
        gone = pluralize(len(found.gone), "job is", "jobs are")
        confirm(f"{gone} no longer in the file: {listed}. Archive?", yes=yes)
    _write(session, wanted, found, JobWriter(names, calendars), note, force=force)
    if prune:
        for job in track("archiving", found.gone):
            session.client.jobs.delete(job.id)
    session.show(
        plan_json(found, applied=True, prune=prune), lambda: plan_page(found, prune=prune, applied=True)
    )


@api_command
def export(
    session: Session,
    q: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER", help="Only jobs that match, such as tag:billing. Default: all."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", help="File to write. Default: standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """Write jobs to a file for `foliot apply`: YAML, or JSON with -o json. Archived jobs are left out."""
    from foliot.cli.job_file import job_file_of
    from foliot.cli.yaml_text import write_yaml
    from foliot.sdk.sync.plan import unique_names

    jobs = sorted(
        track("reading", session.client.jobs.each(q=" ".join(q) if q else None)), key=lambda job: job.name
    )
    needs_all_names = q and any(job.depends_on for job in jobs)
    names = unique_names(session.client.jobs.each()) if needs_all_names else unique_names(jobs)
    content = job_file_of(jobs, names, _calendar_names(session))
    text = (
        json.dumps(content, ensure_ascii=False, indent=2)
        if session.requested_format is OutputFormat.JSON
        else write_yaml(content).rstrip("\n")
    )
    repeated = sorted({job.name for job in jobs if sum(other.name == job.name for other in jobs) > 1})
    if repeated:
        print_err(f"Note: several jobs have the name {', '.join(repeated)}. Apply needs unique names.")
    if file is None:
        print_out(text)
        return
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Invalid(f"Cannot write {file}: {error.strerror or error}.") from None
    print_err(f"Wrote {pluralize(len(jobs), 'job')} to {file}.")


def plan_page(plan: SyncPlan, *, prune: bool, applied: bool) -> Block:
    """Show new jobs, changes field by field, removed jobs, and how many stay as they are."""
    blocks: list[Block] = []
    for entry in plan.create:
        schedule = entry.schedule
        shown = next(
            (schedule[name] for name in ("words", "expr", "every", "at") if schedule.get(name)), "manual"
        )
        blocks.append(line(("+ ", GREEN), (entry.name, BOLD), f"  {shown}"))
    for update in plan.update:
        app = update.job.managed_by
        managed = "" if app is None or applied else f'  managed by the app "{app}": needs --force'
        blocks.append(line(("~ ", YELLOW), (update.entry.name, BOLD), managed))
        blocks.append(change_table(update.changes))
    for job in plan.gone:
        hint = "" if prune else ": --prune archives it"
        sign = "- " if prune else "? "
        blocks.append(line((sign, RED), (job.name, BOLD), f"  no longer in the file{hint}"))
    if plan.same:
        blocks.append(styled(f"= {len(plan.same)} unchanged", DIM))
    if plan.untouched:
        names = ", ".join(job.name for job in plan.untouched[:MAX_NAMED])
        more = f" and {len(plan.untouched) - MAX_NAMED} more" if len(plan.untouched) > MAX_NAMED else ""
        blocks.append(styled(f"Not in the file, left as they are: {names}{more}", DIM))
    return stack(*blocks, styled(_summary(plan, prune=prune, applied=applied), BOLD))


def plan_json(plan: SyncPlan, *, prune: bool, applied: bool) -> dict[str, Any]:
    def refs(jobs: tuple[JobOut, ...]) -> list[dict[str, str]]:
        return [{"id": str(job.id), "name": job.name} for job in jobs]

    return {
        "applied": applied,
        "create": [{"name": entry.name} for entry in plan.create],
        "change": [
            {
                "id": str(update.job.id),
                "name": update.entry.name,
                "managed_by": update.job.managed_by,
                "changes": [
                    {"path": each.pointer, "before": each.before, "after": each.after}
                    for each in update.changes
                ],
            }
            for update in plan.update
        ],
        "archive": refs(plan.gone if prune else ()),
        "same": refs(plan.same),
        "untouched": refs((*plan.untouched, *(() if prune else plan.gone))),
    }


def _summary(plan: SyncPlan, *, prune: bool, applied: bool) -> str:
    gone = len(plan.gone) if prune else 0
    if plan.changes_nothing and not gone:
        return "No changes."
    verbs = ("created", "changed", "archived") if applied else ("to create", "to change", "to archive")
    counts = zip((len(plan.create), len(plan.update), gone), verbs, strict=True)
    text = ", ".join(f"{count} {verb}" for count, verb in counts if count)
    return f"{text}." if applied else f"{text}. Nothing was done."


def _refuse_managed(found: SyncPlan) -> None:
    """Refuse before the first write: an error halfway would leave the file half applied."""
    managed = [update for update in found.update if update.job.managed_by is not None]
    if managed:
        lines = [f'"{each.entry.name}" is managed by the app "{each.job.managed_by}"' for each in managed]
        raise ManagedByCode(
            f"Code manages {pluralize(len(managed), 'job')} of this file. Nothing was done.",
            hint="\n  ".join(["Change them in the code, or add --force:", *lines]),
        )


def _write(
    session: Session, wanted: JobFile, found: SyncPlan, writer: JobWriter, note: str | None, *, force: bool
) -> None:
    for entry in track("creating", found.create):
        writer.remember(entry, session.client.jobs.create(writer.create_body(entry, [wanted.marker])).id)
    for update in track("changing", found.update):
        session.client.jobs.replace(
            update.job.id,
            writer.replace_body(update),
            revision=update.job.revision,
            note=note,
            force=force,
        )


def _calendar_names(session: Session) -> dict[UUID, str]:
    return {calendar.id: calendar.name for calendar in session.client.calendars.each()}


def _schedule_resolver(session: Session) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that asks the server for a schedule in full, once for each text."""
    known: dict[str, Mapping[str, Any]] = {}

    def resolve(schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        key = repr(sorted(schedule.items()))
        if key not in known:
            known[key] = session.client.preview(schedule, n=1).schedule.model_dump(mode="json")
        return known[key]

    return resolve
