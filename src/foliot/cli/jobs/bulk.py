"""`foliot jobs bulk`: one thing done to all jobs that a filter finds, after they were counted and somebody agreed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.progress import progress_bar, spinner
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.times import local_zone, parse_time
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.bulk import BulkOut


class Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    ARCHIVE = "archive"
    RUN = "run"
    TAG = "tag"
    UNTAG = "untag"


@dataclass(frozen=True, slots=True)
class Asked:
    action: Action
    q: str
    args: dict[str, Any]


@api_command
def bulk(
    session: Session,
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
        args["until"] = parse_time(until, session.now, local_zone(), flag="--until")
    asked = Asked(action, q, args)
    seen = _done(session, asked)
    if dry_run or not seen.done:
        session.show(seen, lambda: bulk_done(seen))
        return
    confirm(question(seen, q), yes=yes)
    told = _done(session, asked, seen=seen.found)
    session.show(told, lambda: bulk_done(told))
    if told.failed:
        raise typer.Exit(1)


def _done(session: Session, asked: Asked, *, seen: int | None = None) -> BulkOut:
    """Call after call until none remains, each under the number of jobs that was seen; without one, it is only tried."""
    pieces: list[BulkOut] = []
    left = seen
    with spinner("Counting") if seen is None else progress_bar(asked.action.value, seen) as advance:
        while not pieces or pieces[-1].remaining:
            told = session.client.jobs.bulk(
                asked.action.value,
                q=asked.q,
                expected_count=left,
                after=pieces[-1].next_after if pieces else None,
                dry_run=seen is None,
                args=asked.args,
            )
            pieces.append(told)
            if left is not None and advance is not None:
                advance(left - told.remaining)
                left = told.remaining
    return pieces[0].model_copy(
        update={
            "done": sum(each.done for each in pieces),
            "already": sum(each.already for each in pieces),
            "failed": sum(each.failed for each in pieces),
            "remaining": 0,
            "next_after": None,
            "results": [result for each in pieces for result in each.results],
        }
    )
