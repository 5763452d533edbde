"""`foliot jobs bulk`: one thing done to all jobs that a filter finds, after they were counted and somebody agreed."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.here import DryRun, Here, Yes, asking, confirm
from foliot.cli.output import counted
from foliot.cli.times import local_zone, read_moment
from foliot.cli.waiting import bar, spinning
from foliot.domain.errors import Conflict, Invalid

if TYPE_CHECKING:
    from foliot.wire.bulk import BulkOut

PIECE = 500  # jobs in one call; more go in several, with a bar


class Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    ARCHIVE = "archive"
    RUN = "run"
    TAG = "tag"
    UNTAG = "untag"


@asking
def bulk(
    here: Here,
    action: Annotated[Action, typer.Argument(metavar="ACTION", help=", ".join(Action) + ".")],
    q: Annotated[
        str,
        typer.Option("-q", "--query", help="Which jobs, as `foliot jobs list` finds them.", metavar="FILTER"),
    ],
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="With tag and untag: which.", metavar="TAG")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="With pause and disable: why.", metavar="TEXT")] = None,
    until: Annotated[
        str | None, typer.Option(help="With pause: resume by themselves then.", metavar="TIME")
    ] = None,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="With resume: run what went by meanwhile.")
    ] = False,
    override: Annotated[
        bool, typer.Option("--override", help="With run: even while a freeze holds them.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="With archive: take them out of jobs that depend on them.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Do one thing to every job that a filter finds: -q tag:billing. Counts them first, and asks.

    Nothing is done to jobs that you have not counted. One that cannot is told, and stops no other; the exit code is then 1.
    """
    from foliot.cli.jobs.bulk_rendering import bulk_done, question

    if bool(tag) != (action in {Action.TAG, Action.UNTAG}):
        wrong = "--tag goes with tag and untag." if tag else "Which tags?"
        raise Invalid(wrong, hint=f"Such as foliot jobs bulk tag -q '{q or 'type:http'}' --tag billing.")
    args: dict[str, Any] = {"catch_up": catch_up, "override": override, "detach": detach, "tags": tag or []}
    if reason is not None:
        args["reason"] = reason
    if until is not None:
        args["until"] = read_moment(until, here.now, local_zone(), flag="--until")
    with spinning("Counting"):
        seen = here.client.jobs.bulk(action.value, q=q, dry_run=True, args=args)
    if dry_run or not seen.done:
        here.show(seen, lambda: bulk_done(seen))
        return
    confirm(question(seen, q), yes=yes)
    told = _done(here, action, q, seen.found, args)
    here.show(told, lambda: bulk_done(told))
    if told.failed:
        raise typer.Exit(1)


def _done(here: Here, action: Action, q: str, count: int, args: dict[str, Any]) -> BulkOut:
    """In one call under the number that was seen; more than a piece, by their ids, with a bar for whoever watches."""
    from foliot.wire.bulk import BulkOut

    if count <= PIECE:
        with spinning(f"{action.value}: {counted(count, 'job')}"):
            return here.client.jobs.bulk(action.value, q=q, expected_count=count, args=args)
    with spinning("Looking them up"):
        ids = [job.id for job in here.client.jobs.each(q=q)]
    if len(ids) != count:
        raise Conflict(
            f"The filter found {count:,} jobs and now finds {len(ids):,}.",
            hint="Nothing was done. Look again.",
        )
    pieces = []
    with bar(action.value, count) as advance:
        for at in range(0, count, PIECE):
            pieces.append(here.client.jobs.bulk(action.value, ids=ids[at : at + PIECE], args=args))
            advance(pieces[-1].found)
    return BulkOut(
        action=action.value,
        dry_run=False,
        found=count,
        done=sum(each.done for each in pieces),
        already=sum(each.already for each in pieces),
        failed=sum(each.failed for each in pieces),
        results=[result for each in pieces for result in each.results],
    )
