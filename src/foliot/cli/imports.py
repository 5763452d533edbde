"""`foliot import`: bring jobs of other schedulers over, disabled or in shadow mode. `foliot cutover` lets them run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.input_files import read_text
from foliot.cli.lookup import find_job
from foliot.cli.output import pluralize
from foliot.cli.progress import track
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, Block, Column, Table, line, stack, styled
from foliot.cli.times import relative
from foliot.cli.yaml_text import read_yaml
from foliot.wire.imports import ImportResult, ImportSource

if TYPE_CHECKING:
    from foliot.wire.imports import ImportLine, ImportOut
    from foliot.wire.jobs import JobOut

IMPORTED = "imported"  # the tag of every imported job


@api_command
def import_jobs(
    session: Session,
    source: Annotated[ImportSource, typer.Argument(help="Where the file comes from.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - is standard input.")],
    plan: Annotated[
        bool, typer.Option("--plan", "--dry-run", help="Validate everything and show what would happen.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Also overwrite imported jobs that were edited here.")
    ] = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="New jobs record their planned times at once, and run nothing.")
    ] = False,
    time_zone: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Zone of schedules that name none.")
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="For openclaw: YAML with agents, rooms and channels, each as {theirs: ours}.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="NAME", help="For openclaw: the agent that owns jobs which name none."
        ),
    ] = None,
) -> None:
    """Import jobs of another scheduler. They arrive disabled: review them, then `foliot jobs resume`.

    Importing the same file again changes nothing. A record that cannot be read is named and stops no other. Each job
    keeps its original in external_ref.
    """
    owners: dict[str, Any] = read_yaml(read_text(mapping, "--map"), "--map") if mapping is not None else {}
    given = {
        "source": source.value,
        "text": read_text(file, "FILE"),
        "file_name": Path(file).name,
        "time_zone": time_zone,
        "update": update,
        "shadow": shadow,
        "agent": agent,
        **owners,
    }
    done = session.client.import_jobs(given, dry_run=plan)
    session.show(done, lambda: _page(done, shadow=shadow))
    if done.counts[ImportResult.REJECTED]:
        raise typer.Exit(1)


@api_command
def cutover(
    session: Session,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOB]...", help="Jobs in shadow mode. Default: all imported."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """End shadow mode: from now on Foliot runs these jobs. Switch the other scheduler off first.

    Compare before: `foliot runs list reason:shadow` lists what would have run.
    """
    client = session.client
    named = [find_job(client, each) for each in jobs] if jobs else list(client.jobs.each(tag=[IMPORTED]))
    found = [job for job in named if job.shadow]
    if found and not dry_run:
        confirm(f"Run {pluralize(len(found), 'job', 'jobs')} from now on?", yes=yes)
        found = [
            client.jobs.patch(job.id, {"shadow": False}, note="cutover")
            for job in track("ending shadow mode", found)
        ]
    session.show(found, lambda: _cutover_page(session, found, is_tried=dry_run))


def _cutover_page(session: Session, jobs: list[JobOut], *, is_tried: bool) -> Block:
    columns: tuple[Column[JobOut], ...] = (
        Column("NAME", lambda job: job.name, wrap=True),
        Column("RECORDED", lambda job: str(job.skip_count)),
        Column("NEXT", lambda job: relative(job.next_run_at - session.now) if job.next_run_at else "-"),
        Column("SCHEDULE", lambda job: job.schedule.words, wrap=True),
    )
    table = Table(columns, jobs, empty="No job is in shadow mode.")
    if not jobs:
        return table
    count = pluralize(len(jobs), "job", "jobs")
    done = (
        f"Would run {count} from now on. Nothing was done."
        if is_tried
        else f"Foliot runs {count} from now on."
    )
    return stack(table, line(styled(done, BOLD)))


_PLANNED: tuple[Column[ImportLine], ...] = (
    Column("SCHEDULE", lambda each: each.words or "-", wrap=True),
    Column("NEXT", lambda each: f"{each.next_times[0]:%Y-%m-%d %H:%MZ}" if each.next_times else "-"),
)


def _page(done: ImportOut, *, shadow: bool) -> Block:
    columns: tuple[Column[ImportLine], ...] = (
        Column("#", lambda each: str(each.index)),
        Column("RESULT", lambda each: each.result.value),
        Column("NAME", lambda each: each.name or each.key or "-"),
        *(_PLANNED if done.planned else ()),
        Column("NOTES", lambda each: " ".join(each.notes) or "-", wrap=True),
    )
    counts = ", ".join(f"{count} {result.value}" for result, count in done.counts.items() if count)
    verb = "Would import" if done.planned else "Imported"
    total = pluralize(len(done.records), "record", "records")
    after = (
        "They are history: nothing is run again. See: foliot runs list trigger:import"
        if done.source == ImportSource.OPENCLAW_RUNS.value
        else "They record their times and run nothing. Compare: foliot runs list reason:shadow. Then: foliot cutover"
        if shadow and any(done.counts.get(each) for each in (ImportResult.IMPORTED, ImportResult.UPDATED))
        else "Imported jobs are disabled. Review: foliot jobs list status:disabled"
    )
    return stack(
        Table(columns, done.records),
        line(styled(f"{verb} {total} from {done.source}: {counts or 'nothing'}.", BOLD)),
        line(styled(after, DIM)),
    )
