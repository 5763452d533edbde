"""`foliot apply` and `foliot export`: jobs, and what they use, as a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from uuid import UUID

import typer

from foliot.cli.input_files import read_text
from foliot.cli.jobs.edit import change_table
from foliot.cli.output import dump_json, pluralize, print_err, print_out
from foliot.cli.progress import spinner, track
from foliot.cli.session import OutputFormat, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Block, line, stack, styled
from foliot.domain.errors import Conflict, Invalid, ManagedByCode

if TYPE_CHECKING:
    from foliot.cli.file_plan import FilePlan, PlannedWrite, WriteOptions
    from foliot.cli.job_file import JobFile
    from foliot.sdk import FoliotApiError
    from foliot.sdk.sync.plan import SyncPlan
    from foliot.wire.jobs import JobOut

MAX_NAMED = 10
BATCH_TIMEOUT = 300.0  # seconds: hundreds of jobs are written in one request
_WRITE = re.compile(r"/writes/(\d+)(?:/body)?(.*)", re.ASCII | re.DOTALL)


@api_command
def apply(
    session: Session,
    file: Annotated[
        str, typer.Option("-f", "--file", help="YAML or JSON with jobs; - is standard input.", metavar="FILE")
    ],
    plan_only: Annotated[
        bool,
        typer.Option(
            "--plan", "--dry-run", help="Validate everything and show what would change; change nothing."
        ),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Archive jobs that this file created and no longer contains."),
    ] = False,
    note: Annotated[str | None, typer.Option(help="Why; stored with the revisions.", metavar="TEXT")] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also change jobs that belong to another file or to the code of an app."
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Create and change jobs, calendars, limits and rooms to match a file: all of it, or nothing.

    Jobs are matched by name. Applying the same file again changes nothing. Paused jobs stay paused; jobs that are
    not in the file stay as they are. The file's set: (default: its path) is what --prune stays inside.
    """
    from foliot.cli.file_plan import WriteOptions

    session.timeout = BATCH_TIMEOUT
    wanted = _read(file, prune=prune)
    # A plan validates also what it would refuse without --force, and says so.
    options = WriteOptions(note, force or plan_only, prune)
    found, writes = _plan(session, wanted, options)
    if not force and not plan_only:
        _refuse_foreign(found.jobs, wanted)
    if plan_only:
        _send(session, wanted, writes, dry_run=True)
        session.show(
            plan_json(found, applied=False, prune=prune),
            lambda: plan_page(found, prune=prune, applied=False),
        )
        return
    if prune and found.jobs.gone:
        listed = ", ".join(f'"{job.name}"' for job in found.jobs.gone[:MAX_NAMED])
        gone = pluralize(len(found.jobs.gone), "job is", "jobs are")
        confirm(f"{gone} no longer in the file: {listed}. Archive?", yes=yes)
    _send(session, wanted, writes, dry_run=False)
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
    from foliot.sdk.sync.job_export import job_file_of, write_yaml
    from foliot.sdk.sync.plan import unique_names

    jobs = sorted(
        track("reading", session.client.jobs.each(q=" ".join(q) if q else None)), key=lambda job: job.name
    )
    needs_all_names = q and any(job.depends_on for job in jobs)
    names = unique_names(session.client.jobs.each()) if needs_all_names else unique_names(jobs)
    content = job_file_of(jobs, names, _calendar_names(session))
    text = (
        dump_json(content, indent=2)
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


def plan_page(plan: FilePlan, *, prune: bool, applied: bool) -> Block:
    """Show what is new, changes field by field, removed jobs, and how many things stay as they are."""
    blocks: list[Block] = []
    for thing in plan.things:
        sign, style = ("~ ", YELLOW) if thing.changes else ("+ ", GREEN)
        blocks.append(line((sign, style), (thing.name, BOLD), f"  {thing.noun}"))
        if thing.changes:
            blocks.append(change_table(thing.changes))
    jobs = plan.jobs
    for entry in jobs.create:
        schedule = entry.schedule
        shown = next(
            (schedule[name] for name in ("words", "expr", "every", "at") if schedule.get(name)), "manual"
        )
        restored = "  restored from the archive" if entry.name in plan.restored else ""
        blocks.append(line(("+ ", GREEN), (entry.name, BOLD), f"  {shown}{restored}"))
    for update in jobs.update:
        app = update.job.managed_by
        managed = "" if app is None or applied else f'  managed by the app "{app}": needs --force'
        blocks.append(line(("~ ", YELLOW), (update.entry.name, BOLD), managed))
        blocks.append(change_table(update.changes))
    for job in jobs.gone:
        hint = "" if prune else ": --prune archives it"
        sign = "- " if prune else "? "
        blocks.append(line((sign, RED), (job.name, BOLD), f"  no longer in the file{hint}"))
    if same := len(jobs.same) + plan.same_things:
        blocks.append(styled(f"= {same} unchanged", DIM))
    if jobs.untouched:
        names = ", ".join(job.name for job in jobs.untouched[:MAX_NAMED])
        more = f" and {len(jobs.untouched) - MAX_NAMED} more" if len(jobs.untouched) > MAX_NAMED else ""
        blocks.append(styled(f"Not in the file, left as they are: {names}{more}", DIM))
    return stack(*blocks, styled(_summary(plan, prune=prune, applied=applied), BOLD))


def plan_json(plan: FilePlan, *, prune: bool, applied: bool) -> dict[str, Any]:
    def refs(jobs: Sequence[JobOut]) -> list[dict[str, str]]:
        return [{"id": str(job.id), "name": job.name} for job in jobs]

    jobs = plan.jobs
    return {
        "applied": applied,
        "create": [{"name": entry.name, "restored": entry.name in plan.restored} for entry in jobs.create],
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
            for update in jobs.update
        ],
        "archive": refs(jobs.gone if prune else ()),
        "same": refs(jobs.same),
        "untouched": refs((*jobs.untouched, *(() if prune else jobs.gone))),
        "things": [
            {
                "noun": thing.noun,
                "name": thing.name,
                "changes": [
                    {"path": each.pointer, "before": each.before, "after": each.after}
                    for each in thing.changes
                ],
            }
            for thing in plan.things
        ],
    }


def _summary(plan: FilePlan, *, prune: bool, applied: bool) -> str:
    gone = len(plan.jobs.gone) if prune else 0
    if plan.changes_nothing and not gone:
        return "No changes."
    changed = [thing for thing in plan.things if thing.changes]
    new, edited = (
        len(plan.things) - len(changed) + len(plan.jobs.create),
        len(changed) + len(plan.jobs.update),
    )
    verbs = ("created", "changed", "archived") if applied else ("to create", "to change", "to archive")
    counts = zip((new, edited, gone), verbs, strict=True)
    text = ", ".join(f"{count} {verb}" for count, verb in counts if count)
    return f"{text}." if applied else f"{text}. Nothing was done."


def _read(file: str, *, prune: bool) -> JobFile:
    from foliot.cli.job_file import read_job_file, set_of_path

    text = read_text(file, "--file")
    if file != "-":
        return read_job_file(text, file, set_of_path(Path(file)))
    wanted = read_job_file(text, "standard input", "")
    if prune and not wanted.set:
        raise Invalid(
            "--prune needs a set.", hint='Write "set: NAME" into the file; standard input has no path.'
        )
    return wanted


def _plan(session: Session, wanted: JobFile, options: WriteOptions) -> tuple[FilePlan, list[PlannedWrite]]:
    """Read the server once and compare everything with it."""
    from foliot.cli.file_plan import FilePlan, ThingPlanner, batch_of
    from foliot.sdk.sync.plan import JobWriter, plan_sync, unique_names

    client = session.client
    jobs = list(track("reading", client.jobs.each()))
    things = ThingPlanner()
    things.add_calendars(wanted.calendars, client.calendars.each())
    if wanted.limits:
        things.add_limits(wanted.limits, client.limits.list().items)
    if wanted.rooms:
        things.add_rooms(wanted.rooms, client.rooms.each())
    names = unique_names(jobs)
    found = plan_sync(
        wanted.jobs,
        jobs,
        names,
        things.calendars,
        resolve=_schedule_resolver(session),
        is_mine=lambda job: bool(wanted.set) and wanted.marker in job.tags,
    )
    restored: dict[str, JobOut] = {}
    if found.create and wanted.set:
        archived = client.jobs.each(status=["archived"], tag=[wanted.marker], sort="created_at")
        new = {entry.name for entry in found.create}
        restored = {job.name: job for job in archived if job.name in new}  # the newest of several
    plan = FilePlan(found, tuple(things.changes), things.same, restored)
    return plan, batch_of(wanted, plan, JobWriter(names, things.calendars), options)


def _refuse_foreign(found: SyncPlan, wanted: JobFile) -> None:
    """Refuse to change jobs that other code or another file would change back."""
    from foliot.cli.file_plan import foreign_set

    managed = [update for update in found.update if update.job.managed_by is not None]
    if managed:
        lines = [f'"{each.entry.name}" is managed by the app "{each.job.managed_by}"' for each in managed]
        raise ManagedByCode(
            f"Code manages {pluralize(len(managed), 'job')} of this file. Nothing was done.",
            hint="\n  ".join(["Change them in the code, or add --force:", *lines]),
        )
    foreign = [(each.entry.name, name) for each in found.update if (name := foreign_set(each.job, wanted))]
    if foreign:
        lines = [f'"{job}" belongs to the set "{name}"' for job, name in foreign]
        raise Conflict(
            f"{pluralize(len(foreign), 'job belongs', 'jobs belong')} to another file. Nothing was done.",
            hint="\n  ".join(["Change them there, or add --force to move them into this file:", *lines]),
        )


def _send(session: Session, wanted: JobFile, writes: list[PlannedWrite], *, dry_run: bool) -> None:
    """Send everything as one batch."""
    from foliot.sdk import FoliotApiError
    from foliot.wire.batch import MOST_WRITES

    if not writes:
        return
    if len(writes) > MOST_WRITES:
        raise Invalid(
            f"The file changes {len(writes):,} things; at most {MOST_WRITES:,} can be changed together.",
            hint="Divide it into several files.",
        )
    with spinner("Validating" if dry_run else "Applying"):
        try:
            session.client.batch([each.body for each in writes], dry_run=dry_run)
        except FoliotApiError as error:
            _explain(error, wanted, writes)


def _explain(error: FoliotApiError, wanted: JobFile, writes: list[PlannedWrite]) -> NoReturn:
    """Raise the server's error with the name and the line of each item that it refused."""
    lines: list[str] = []
    for each in error.errors:
        at = _WRITE.fullmatch(each.pointer)
        if at is None or int(at[1]) >= len(writes):
            continue
        write, pointer = writes[int(at[1])], at[2]
        where = (
            "" if write.section is None else f"{wanted.lines.place(write.section, write.index, pointer)}: "
        )
        said = f"{pointer}: {each.message}" if pointer else each.message
        lines.append(f'{where}"{write.label}" {said}' + (f" {each.hint}" if each.hint else ""))
    if not lines:
        raise error
    kind = Conflict if error.status in {409, 412} else Invalid
    count = pluralize(len({each.partition('"')[2] for each in lines}), "problem")
    raise kind(f"The server refused the file: {count}. Nothing was done.", hint="\n  ".join(lines)) from None


def _calendar_names(session: Session) -> dict[UUID, str]:
    return {calendar.id: calendar.name for calendar in session.client.calendars.each()}


def _schedule_resolver(session: Session) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that completes a schedule: cron in the zone of the workspace, words by the server, each text once."""
    from foliot.sdk import Invalid as ApiInvalid

    known: dict[str, Mapping[str, Any]] = {}
    zone: list[str] = []

    def resolve(schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        if "words" not in schedule:
            if not zone:
                zone.append(session.client.me().workspace.default_timezone)
            return {**schedule, "timezone": zone[0]}
        key = repr(sorted(schedule.items()))
        if key not in known:
            try:
                known[key] = session.client.preview(schedule, n=1).schedule.model_dump(mode="json")
            except ApiInvalid:  # a change, so that the batch sends it and names the line of what is wrong
                known[key] = {**schedule, "kind": "invalid"}
        return known[key]

    return resolve
