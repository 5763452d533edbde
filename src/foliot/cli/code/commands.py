"""`foliot apply` and `foliot export`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

import typer

from foliot.cli.here import Form, Here, Yes, asking, confirm
from foliot.cli.output import say, tell
from foliot.cli.reading import text_of
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.cli.code.plan import Plan
    from foliot.cli.code.sheet import Entry, Sheet
    from foliot.wire.jobs import JobOut

Thing = TypeVar("Thing")
WORTH_A_BAR = 5
A_PAGE = 200


@asking
def apply(
    here: Here,
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
    yes: Yes = False,
) -> None:
    """Make the jobs of a file be as it says: create those that are new, change those that differ, leave all others.

    A job is known by its name. Applying the same file again changes nothing. Paused jobs stay paused.
    """
    from foliot.cli.code.plan import plan
    from foliot.cli.code.rendering import as_json, plan_page
    from foliot.cli.code.sheet import read_sheet

    sheet = read_sheet(text_of(file, "--file"), "standard input" if file == "-" else file)
    jobs = list(counted("reading", here.client.jobs.each()))
    names, calendars = names_of(jobs), _calendars(here)
    settle = _settler(here)
    found = plan(sheet, jobs, names, calendars, settle)
    if plan_only:
        here.show(
            as_json(found, applied=False, prune=prune), lambda: plan_page(found, prune=prune, applied=False)
        )
        return
    if prune and found.gone:
        listed = ", ".join(f'"{job.name}"' for job in found.gone[:10])
        confirm(f"{len(found.gone)} jobs are no longer in the file: {listed}. Archive them?", yes=yes)
    _carry_out(here, sheet, found, names, calendars, note)
    if prune:
        for job in counted("archiving", found.gone):
            here.client.jobs.delete(job.id)
    here.show(as_json(found, applied=True, prune=prune), lambda: plan_page(found, prune=prune, applied=True))


@asking
def export(
    here: Here,
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

    from foliot.cli.code.sheet import sheet_of
    from foliot.cli.code.yaml_text import write_yaml

    jobs = sorted(
        counted("reading", here.client.jobs.each(q=" ".join(q) if q else None)), key=lambda job: job.name
    )
    names = names_of(here.client.jobs.each()) if q and any(job.depends_on for job in jobs) else names_of(jobs)
    sheet = sheet_of(jobs, names, _calendars(here))
    text = (
        json.dumps(sheet, ensure_ascii=False, indent=2)
        if here.wants is Form.JSON
        else write_yaml(sheet).rstrip("\n")
    )
    twice = sorted({job.name for job in jobs if sum(other.name == job.name for other in jobs) > 1})
    if twice:
        tell(f"Note: several jobs are called {', '.join(twice)}; apply needs each name once.")
    if file is None:
        say(text)
        return
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {error.strerror or error}.") from None
    tell(f"Wrote {len(jobs)} jobs to {file}.")


def names_of(jobs: Iterable[JobOut]) -> dict[UUID, str]:
    """Only names that mean one job: others stay ids."""
    by_name: dict[str, list[UUID]] = {}
    for job in jobs:
        by_name.setdefault(job.name, []).append(job.id)
    return {ids[0]: name for name, ids in by_name.items() if len(ids) == 1}


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


def _carry_out(
    here: Here,
    sheet: Sheet,
    found: Plan,
    names: dict[UUID, str],
    calendars: Mapping[UUID, str],
    note: str | None,
) -> None:
    ids = {name: job_id for job_id, name in names.items()}
    places = {name: calendar_id for calendar_id, name in calendars.items()}

    def body(entry: Entry, schedule: Mapping[str, Any]) -> dict[str, Any]:
        edges = [{**edge, "job": ids.get(edge["job"], edge["job"])} for edge in entry.wanted["depends_on"]]
        rooms = [places.get(each, each) for each in entry.wanted["calendars"]]
        return {**entry.wanted, "depends_on": edges, "calendars": rooms, "schedule": dict(schedule)}

    for entry in counted("creating", found.create):
        job = body(entry, entry.schedule)
        made = here.client.jobs.create(
            {**job, "tags": [*job["tags"], sheet.marker], "enabled": entry.enabled}
        )
        ids[entry.name] = made.id
    for update in counted("changing", found.update):
        kept = update.job.schedule.model_dump(mode="json")
        job = body(update.entry, kept if update.keeps_schedule else update.entry.schedule)
        marks = [tag for tag in update.job.tags if tag.startswith("file:")]
        here.client.jobs.replace(
            update.job.id, {**job, "tags": [*job["tags"], *marks]}, revision=update.job.revision, note=note
        )


def _calendars(here: Here) -> dict[UUID, str]:
    return {calendar.id: calendar.name for calendar in here.client.calendars.each()}


def _settler(here: Here) -> Any:
    """What a schedule is in full; each text is asked for once."""
    known: dict[str, Mapping[str, Any]] = {}

    def settle(schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        key = repr(sorted(schedule.items()))
        if key not in known:
            known[key] = here.client.preview(schedule, n=1).schedule.model_dump(mode="json")
        return known[key]

    return settle
