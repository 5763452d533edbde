"""`foliot jobs bulk`: one action on all jobs that a filter finds, after counting them and asking."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.output import pluralize
from foliot.cli.progress import progress_bar, spinner
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, RED, Block, Column, Table, line, stack, styled
from foliot.cli.times import local_zone, parse_time
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.bulk import BulkOut, BulkResult

MAX_FAILED = 20  # jobs that are listed


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    ARCHIVE = "archive"
    RESTORE = "restore"
    RUN = "run"
    TAG = "tag"
    UNTAG = "untag"
    HAND_OVER = "hand_over"


_PAST = {
    "pause": "Paused",
    "resume": "Resumed",
    "disable": "Disabled",
    "archive": "Archived",
    "restore": "Restored",
    "run": "Started a run of",
    "tag": "Tagged",
    "untag": "Untagged",
    "hand_over": "Handed over",
}


@dataclass(frozen=True, slots=True)
class BulkRequest:
    action: BulkAction
    q: str
    args: dict[str, Any]


@api_command
def bulk(
    session: Session,
    action: Annotated[BulkAction, typer.Argument(metavar="ACTION", help=", ".join(BulkAction) + ".")],
    q: Annotated[
        str,
        typer.Option("-q", "--query", help="Filter, as in `foliot jobs list`.", metavar="FILTER"),
    ],
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="With tag and untag: the tag; repeatable.", metavar="TAG"),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="With pause and disable: why.", metavar="TEXT")] = None,
    until: Annotated[
        str | None, typer.Option(help="With pause: when to resume automatically.", metavar="TIME")
    ] = None,
    catch_up: Annotated[bool, typer.Option("--catch-up", help="With resume: run the missed times.")] = False,
    override: Annotated[
        bool, typer.Option("--override", help="With run: even while a freeze holds them.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="With archive: remove them from jobs that depend on them.")
    ] = False,
    owner: Annotated[
        str | None, typer.Option("--to", help="With hand_over: the new owner.", metavar="WHO")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Apply one action to every job that a filter finds, such as -q tag:billing. Counts them first, and asks.

    If the number of jobs changes meanwhile, nothing is done. If some jobs fail, the others continue and the
    exit code is 1.
    """
    if bool(tag) != (action in {BulkAction.TAG, BulkAction.UNTAG}):
        wrong = "--tag only applies to tag and untag." if tag else "--tag is missing."
        raise Invalid(wrong, hint=f"Example: foliot jobs bulk tag -q '{q or 'type:http'}' --tag billing.")
    args: dict[str, Any] = {"catch_up": catch_up, "override": override, "detach": detach, "tags": tag or []}
    if owner is not None:
        args["owner"] = owner
    if reason is not None:
        args["reason"] = reason
    if until is not None:
        args["until"] = parse_time(until, session.now, local_zone(), flag="--until")
    request = BulkRequest(action, q, args)
    seen = _send(session, request)
    if dry_run or not seen.done:
        session.show(seen, lambda: bulk_page(seen))
        return
    confirm(_question(seen, q), yes=yes)
    result = _send(session, request, expected=seen.found)
    session.show(result, lambda: bulk_page(result))
    if result.failed:
        raise typer.Exit(1)


def _send(session: Session, request: BulkRequest, *, expected: int | None = None) -> BulkOut:
    """Call the server until no job remains. Without an expected number of jobs, send a dry run."""
    parts: list[BulkOut] = []
    left = expected
    with spinner("Counting") if expected is None else progress_bar(request.action.value, expected) as advance:
        while not parts or parts[-1].remaining:
            part = session.client.jobs.bulk(
                request.action.value,
                q=request.q,
                expected_count=left,
                after=parts[-1].next_after if parts else None,
                dry_run=expected is None,
                args=request.args,
            )
            parts.append(part)
            if left is not None and advance is not None:
                advance(left - part.remaining)
                left = part.remaining
    return parts[0].model_copy(
        update={
            "done": sum(each.done for each in parts),
            "already": sum(each.already for each in parts),
            "failed": sum(each.failed for each in parts),
            "remaining": 0,
            "next_after": None,
            "results": [result for each in parts for result in each.results],
        }
    )


def _question(seen: BulkOut, q: str) -> str:
    matches = f"{pluralize(seen.found, 'job matches', 'jobs match')} {q or 'everything'}"
    rest = [f"{seen.already:,} unchanged"] if seen.already else []
    rest += [f"{seen.failed:,} not possible"] if seen.failed else []
    but = f" ({', '.join(rest)})" if rest else ""
    return f"{matches}. {seen.action.capitalize()} {seen.done:,}{but}?"


def bulk_page(result: BulkOut) -> Block:
    """Show how many jobs changed or would change, then those that failed and why."""
    if not result.found:
        return styled("No job matches. Nothing was done.")
    if result.already == result.found:
        are = pluralize(result.found, "job is", "jobs are")
        return styled(f"{are} already in this state. Nothing was done.")
    verb = f"Would {result.action}" if result.dry_run else _PAST.get(result.action, result.action)
    already = f" {pluralize(result.already, 'was', 'were')} already in this state." if result.already else ""
    errors = f" {pluralize(result.failed, 'job')} failed:" if result.failed else ""
    if result.failed and result.dry_run:
        errors = f" {pluralize(result.failed, 'job')} would fail:"
    failed = [each for each in result.results if each.outcome in {"failed", "not_found"}]
    more = len(failed) - MAX_FAILED
    columns: list[Column[BulkResult]] = [
        Column("id", lambda each: str(each.id), DIM),
        Column("why", lambda each: each.message, wrap=True),
    ]
    return stack(
        line((verb, BOLD), f" {pluralize(result.done, 'job')}.{already}", (errors, RED)),
        Table(columns, failed[:MAX_FAILED], indent=2, show_titles=False) if failed else None,
        styled(f"  and {more:,} more; -o json lists them all") if more > 0 else None,
        styled("Nothing was done.") if result.dry_run else None,
    )
