"""`foliot apply` and `foliot export`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

import typer

from foliot.cli.input_files import read_text
from foliot.cli.output import print_err, print_out
from foliot.cli.session import OutputFormat, Session, Yes, api_command, confirm
from foliot.domain.errors import Invalid, ManagedByCode

if TYPE_CHECKING:
    from foliot.cli.apply.job_file import Sheet
    from foliot.sdk.sync.plan import Plan
    from foliot.sdk.sync.writes import Writing

Thing = TypeVar("Thing")
WORTH_A_BAR = 5
A_PAGE = 200


@api_command
def apply(
    session: Session,
    file: Annotated[
        str, typer.Option("-f", "--file", help="YAML or JSON with jobs; - is standard input.", metavar="FILE")
    ],
    plan_only: Annotated[
        bool, typer.Option("--plan", "--dry-run", help="Say what it would do, and do nothing.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Archive jobs that this file once made and no longer has.")
    ] = False,
    note: Annotated[
        str | None, typer.Option(help="Why, for whoever reads the revisions.", metavar="TEXT")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Change jobs, too, that an app's code manages and may change back."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Make the jobs of a file be as it says: create those that are new, change those that differ, leave all others.

    A job is known by its name. Applying the same file again changes nothing. Paused jobs stay paused.
    """
    from foliot.cli.apply.job_file import read_sheet
    from foliot.cli.apply.tables import as_json, plan_page
    from foliot.sdk.sync.plan import plan
    from foliot.sdk.sync.writes import Writing, names_of

    sheet = read_sheet(read_text(file, "--file"), "standard input" if file == "-" else file)
    jobs = list(counted("reading", session.client.jobs.each()))
    names, calendars = names_of(jobs), _calendars(session)
    found = plan(
        sheet.entries,
        jobs,
        names,
        calendars,
        settle=_settler(session),
        is_mine=lambda job: sheet.marker in job.tags,
    )
    if plan_only:
        session.show(
            as_json(found, applied=False, prune=prune), lambda: plan_page(found, prune=prune, applied=False)
        )
        return
    if not force:
        _refuse_managed(found)
    if prune and found.gone:
        listed = ", ".join(f'"{job.name}"' for job in found.gone[:10])
        confirm(f"{len(found.gone)} jobs are no longer in the file: {listed}. Archive them?", yes=yes)
    _carry_out(session, sheet, found, Writing(names, calendars), note, force=force)
    if prune:
        for job in counted("archiving", found.gone):
            session.client.jobs.delete(job.id)
    session.show(
        as_json(found, applied=True, prune=prune), lambda: plan_page(found, prune=prune, applied=True)
    )


@api_command
def export(
    session: Session,
    q: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER", help="Only these, such as tag:billing. Default: all."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", help="Where to write it. Default: standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """Write jobs as a file that `foliot apply` reads: YAML, or JSON with -o json. Archived ones are left out."""
    import json

    from foliot.cli.apply.job_file import sheet_of
    from foliot.cli.apply.yaml_text import write_yaml
    from foliot.sdk.sync.writes import names_of

    jobs = sorted(
        counted("reading", session.client.jobs.each(q=" ".join(q) if q else None)), key=lambda job: job.name
    )
    names = (
        names_of(session.client.jobs.each()) if q and any(job.depends_on for job in jobs) else names_of(jobs)
    )
    sheet = sheet_of(jobs, names, _calendars(session))
    text = (
        json.dumps(sheet, ensure_ascii=False, indent=2)
        if session.requested_format is OutputFormat.JSON
        else write_yaml(sheet).rstrip("\n")
    )
    twice = sorted({job.name for job in jobs if sum(other.name == job.name for other in jobs) > 1})
    if twice:
        print_err(f"Note: several jobs are called {', '.join(twice)}; apply needs each name once.")
    if file is None:
        print_out(text)
        return
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {error.strerror or error}.") from None
    print_err(f"Wrote {len(jobs)} jobs to {file}.")


def counted(what: str, things: Iterable[Thing]) -> Iterator[Thing]:
    """The same, with a bar for whoever watches and has a few seconds to wait."""
    total = len(things) if isinstance(things, list | tuple) else None
    left = iter(things)
    if not sys.stderr.isatty() or (total is not None and total < WORTH_A_BAR):
        yield from left
        return
    if total is None:
        yield from islice(left, A_PAGE)
    from rich.console import Console
    from rich.progress import track

    yield from track(left, what, total=total, console=Console(stderr=True), transient=True)


def _refuse_managed(found: Plan) -> None:
    """Before anything is done: one refusal halfway would leave half a file applied."""
    managed = [update for update in found.update if update.job.managed_by is not None]
    if managed:
        lines = [f'"{each.entry.name}" belongs to the app "{each.job.managed_by}"' for each in managed]
        raise ManagedByCode(
            f"{len(managed)} of these jobs are managed by code. Nothing was done.",
            hint="\n  ".join(["Change them there, or add --force:", *lines]),
        )


def _carry_out(
    session: Session, sheet: Sheet, found: Plan, writing: Writing, note: str | None, *, force: bool
) -> None:
    for entry in counted("creating", found.create):
        writing.created(entry, session.client.jobs.create(writing.creation(entry, [sheet.marker])).id)
    for update in counted("changing", found.update):
        session.client.jobs.replace(
            update.job.id,
            writing.replacement(update),
            revision=update.job.revision,
            note=note,
            force=force,
        )


def _calendars(session: Session) -> dict[UUID, str]:
    return {calendar.id: calendar.name for calendar in session.client.calendars.each()}


def _settler(session: Session) -> Any:
    """What a schedule is in full; each text is asked for once."""
    known: dict[str, Mapping[str, Any]] = {}

    def settle(schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        key = repr(sorted(schedule.items()))
        if key not in known:
            known[key] = session.client.preview(schedule, n=1).schedule.model_dump(mode="json")
        return known[key]

    return settle
