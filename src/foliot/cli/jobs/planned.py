"""`foliot jobs skip-next|backfill`: planned times that shall pass, and those of the past that shall run after all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import JobRef, find_job
from foliot.cli.output import pluralize
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.times import parse_time
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.jobs import BackfillOut


@api_command
def skip_next(
    session: Session,
    job: JobRef,
    n: Annotated[
        int | None, typer.Option("-n", min=1, max=1000, help="How many. Default: 1.", metavar="N")
    ] = None,
    until: Annotated[str | None, typer.Option(help="All until then, instead.", metavar="TIME")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; the records will say so.", metavar="TEXT")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let none pass after all.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Let the next planned times pass. Each is recorded as skipped when it comes."""
    from foliot.cli.jobs.planned_rendering import skipping
    from foliot.cli.jobs.rendering import moved
    from foliot.cli.jobs.trial_rendering import trial

    found = find_job(session.client, job)
    if undo and dry_run:
        tried = session.client.jobs.dry_run.undo_skip_next(found.id)
        session.show(tried, lambda: trial(f"Would skip nothing of {found.name}", tried, session.now))
        return
    if undo:
        back = session.client.jobs.undo_skip_next(found.id)
        session.show(back, lambda: moved(back, "Nothing will be skipped:", session.now))
        return
    zone = found.schedule.timezone
    at = None if until is None else parse_time(until, session.now, zone, flag="--until")
    verbs = session.client.jobs.dry_run if dry_run else session.client.jobs
    told = verbs.skip_next(found.id, n=n, until=at, reason=reason)
    session.show(told, lambda: skipping(told, found.name, zone, session.now))


@api_command
def backfill(
    session: Session,
    job: JobRef,
    start: Annotated[str, typer.Option("--from", help="Planned times from then on.", metavar="TIME")],
    until: Annotated[
        str, typer.Option("--until", "--to", help="Up to then. Default: now.", metavar="TIME")
    ] = "now",
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Begin with the newest.")] = False,
    skipped: Annotated[bool, typer.Option("--skipped", help="Also times recorded as skipped.")] = False,
    most: Annotated[
        int | None, typer.Option("--max", min=1, max=10_000, help="Refuse more.", metavar="N")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Make runs for planned times of the past that have none. Counts them first, and asks."""
    from foliot.cli.jobs.planned_rendering import filled

    found = find_job(session.client, job)
    zone = found.schedule.timezone
    begin = parse_time(start, session.now, zone, flag="--from", past=True)
    end = parse_time(until, session.now, zone, flag="--until", past=True)
    if end <= begin:
        raise Invalid("--from must be before --until.")

    def asked(*, trying: bool) -> BackfillOut:
        return session.client.jobs.backfill(
            found.id,
            begin,
            end,
            order="newest_first" if newest_first else None,
            max=most,
            skipped=skipped,
            dry_run=trying,
        )

    if dry_run or not yes:
        seen = asked(trying=True)
        if dry_run or not seen.count:
            session.show(seen, lambda: filled(seen, found.name, zone, session.now))
            return
        confirm(f'Make {pluralize(seen.count, "run")} of "{found.name}"?', yes=False)
    made = asked(trying=False)
    session.show(made, lambda: filled(made, found.name, zone, session.now))
