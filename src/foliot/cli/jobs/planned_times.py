"""`foliot jobs skip-next|backfill`: skip planned times of the future, and run missed ones of the past."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.jobs.dry_run import job_dry_run_page
from foliot.cli.jobs.views import planned_time_table, result_line
from foliot.cli.lookup import JobRef, find_job
from foliot.cli.output import pluralize
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, Block, StyledLine, line, stack, styled
from foliot.cli.times import local_time_relative, local_times, parse_time
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.jobs import BackfillOut, SkipNextOut

MAX_SHOWN = 10


@api_command
def skip_next(
    session: Session,
    job: JobRef,
    n: Annotated[
        int | None, typer.Option("-n", min=1, max=1000, help="How many. Default: 1.", metavar="N")
    ] = None,
    until: Annotated[str | None, typer.Option(help="All until this time, instead.", metavar="TIME")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded with each skip.", metavar="TEXT")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Skip none after all.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Skip the next planned times. Each is recorded as skipped at its time."""
    found = find_job(session.client, job)
    if undo and dry_run:
        tried = session.client.jobs.dry_run.undo_skip_next(found.id)
        summary = f"Would skip no planned time of {found.name}"
        session.show(tried, lambda: job_dry_run_page(summary, tried, session.now))
        return
    if undo:
        restored = session.client.jobs.undo_skip_next(found.id)
        session.show(restored, lambda: result_line(restored, "Nothing will be skipped:", session.now))
        return
    zone = found.schedule.timezone
    at = None if until is None else parse_time(until, session.now, zone, flag="--until")
    verbs = session.client.jobs.dry_run if dry_run else session.client.jobs
    skipped = verbs.skip_next(found.id, n=n, until=at, reason=reason)
    session.show(skipped, lambda: skip_page(skipped, found.name, zone, session.now))


@api_command
def backfill(
    session: Session,
    job: JobRef,
    start: Annotated[str, typer.Option("--from", help="First planned time.", metavar="TIME")],
    until: Annotated[
        str, typer.Option("--until", "--to", help="Last planned time. Default: now.", metavar="TIME")
    ] = "now",
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Start with the newest.")] = False,
    skipped: Annotated[bool, typer.Option("--skipped", help="Include times recorded as skipped.")] = False,
    max_runs: Annotated[
        int | None, typer.Option("--max", min=1, max=10_000, help="Refuse to create more.", metavar="N")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Create runs for past planned times that have none. Counts them first, and asks."""
    found = find_job(session.client, job)
    zone = found.schedule.timezone
    begin = parse_time(start, session.now, zone, flag="--from", past=True)
    end = parse_time(until, session.now, zone, flag="--until", past=True)
    if end <= begin:
        raise Invalid("--from must be before --until.")

    def request(*, dry_run: bool) -> BackfillOut:
        return session.client.jobs.backfill(
            found.id,
            begin,
            end,
            order="newest_first" if newest_first else None,
            max=max_runs,
            skipped=skipped,
            dry_run=dry_run,
        )

    if dry_run or not yes:
        seen = request(dry_run=True)
        if dry_run or not seen.count:
            session.show(seen, lambda: backfill_line(seen, found.name, zone))
            return
        confirm(f'Create {pluralize(seen.count, "run")} of "{found.name}"?', yes=False)
    made = request(dry_run=False)
    session.show(made, lambda: backfill_line(made, found.name, zone))


def skip_page(skipped: SkipNextOut, name: str, zone: str, now: datetime) -> Block:
    count = pluralize(skipped.count, "planned time")
    verb = "Would skip" if skipped.dry_run else "Will skip"
    after = "No run is planned after that."
    if skipped.next_run_at:
        after = f"The next run is {local_time_relative(skipped.next_run_at, zone, now)}."
    return stack(
        line((verb, BOLD), f" {count} of {name}:"),
        planned_time_table(skipped.skipped[:MAX_SHOWN], zone, now),
        styled(f"and {skipped.count - MAX_SHOWN:,} more") if skipped.count > MAX_SHOWN else None,
        styled(after),
        styled("Nothing was done.") if skipped.dry_run else None,
    )


def backfill_line(filled: BackfillOut, name: str, zone: str) -> StyledLine:
    if filled.first is None or filled.last is None:
        return styled(f"There is nothing to backfill for {name}.")
    first, last = local_times((filled.first, filled.last), zone)
    runs = f" {pluralize(filled.count, 'run')} of {name}, from {first} to {last}."
    if filled.dry_run:
        return styled(f"Would create{runs} Nothing was done.")
    return line(("Created", BOLD), runs)
