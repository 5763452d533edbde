"""Retry or cancel many runs, named or found by a filter: each in its own transaction, as alone.

A filter reads as many records as one page of the history may. An Idempotency-Key is closed before the first run: a repeat after a
crash does nothing twice and gets an answer that says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from foliot.clock import monotonic
from foliot.domain.access import Scope
from foliot.domain.bulk import check_expected_count
from foliot.domain.errors import FoliotError, Invalid, NotFound, Unavailable
from foliot.domain.filters import Query, Term
from foliot.domain.ids import RunId
from foliot.domain.lifecycle import TERMINAL
from foliot.services.runs import run_control
from foliot.storage.identity import idempotency
from foliot.storage.runs import run_search
from foliot.storage.runs.run_history import RunRecord
from foliot.storage.runs.run_search import RunFilter
from foliot.storage.tx import Database, Role

MOST = 500  # runs of one call
LASTS = 10.0  # seconds; after that no run begins


class RunAction(StrEnum):
    RETRY = "retry"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class RunBulkOrder:
    """`expected_count` is what the caller has seen; a filter needs it."""

    action: RunAction
    ids: tuple[RunId, ...] | None = None
    filters: RunFilter = RunFilter()
    expected_count: int | None = None
    reason: str | None = None
    override: bool = False


@dataclass(slots=True)
class RunBulkResult:
    """`more`: the filter may find further runs beyond those that one call takes."""

    found: int
    more: bool
    done: int = 0
    remaining: int = 0
    refused: list[tuple[RunId, FoliotError]] = field(default_factory=list)


async def act(
    database: Database, scope: Scope, order: RunBulkOrder, *, dry_run: bool = False, lasts: float = LASTS
) -> RunBulkResult:
    ends_by = monotonic() + lasts
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        filters = order.filters
        if order.ids is not None:
            filters = RunFilter(Query((Term("id", order.ids),)))
        page = await run_search.find_of_workspace(
            tx, replace(filters, visible_owner=scope.visible_owner), None, MOST
        )
        result = RunBulkResult(len(page.runs), more=page.next is not None and order.ids is None)
        if order.ids is None:
            check_expected_count("runs", order.expected_count, result.found, dry_run=dry_run)
        claim = scope.actor.claim
        if claim is not None and not dry_run:
            await idempotency.mark_done(
                tx, claim, (f"{order.action.value} of many runs:", f"{result.found} found")
            )
    found = {run.id: run for run in page.runs}
    for missing in dict.fromkeys(order.ids or ()):
        if missing not in found:
            result.refused.append((missing, NotFound("There is no such run.")))
    each_scope = replace(scope, actor=replace(scope.actor, claim=None))
    for place, run in enumerate(page.runs):
        if monotonic() >= ends_by:
            result.remaining = len(page.runs) - place
            break
        refusal = _judge(run, order.action) if dry_run else await _one(database, each_scope, run.id, order)
        if refusal is None:
            result.done += 1
        else:
            result.refused.append((run.id, refusal))
    return result


async def _one(database: Database, scope: Scope, run_id: RunId, order: RunBulkOrder) -> FoliotError | None:
    try:
        if order.action is RunAction.RETRY:
            await run_control.retry_run(database, scope, run_id, override=order.override)
        else:
            await run_control.cancel_run(database, scope, run_id, reason=order.reason)
    except Unavailable:
        raise
    except FoliotError as error:
        return error
    return None


def _judge(run: RunRecord, action: RunAction) -> FoliotError | None:
    """Judge the action by the status of the run."""
    has_ended = run.status in TERMINAL
    if action is RunAction.CANCEL:
        return Invalid("This run has ended.") if has_ended else None
    if not has_ended:
        return Invalid("This run has not ended yet.")
    if run.planned_until is not None:
        return Invalid(
            "This record stands for several planned times that did not run.", hint="Backfill their range."
        )
    return None
