"""One batch of a bulk action, in a transaction that holds few locks for a short time.

Each changed job gets its own audit entry. A job that is refused does not stop the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from foliot.domain.access import Scope
from foliot.domain.bulk import BulkOutcome, JobAction, check_move, is_done
from foliot.domain.errors import FoliotError, IllegalMove, NotFound, Unavailable, not_found
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobEvent
from foliot.services.jobs import job_status_steps
from foliot.services.jobs.job_status_steps import Stop
from foliot.services.jobs.visibility_steps import require_visible_job
from foliot.services.runs import run_steps
from foliot.storage.jobs import dependencies, jobs
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.timers import timers
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

EDITING = frozenset(
    (JobAction.TAG, JobAction.UNTAG, JobAction.HAND_OVER)
)  # each is an edit in its own transaction
STOPS = {JobAction.PAUSE: JobEvent.PAUSE, JobAction.DISABLE: JobEvent.DISABLE}
_IN_THE_GRAPH = frozenset((JobAction.ARCHIVE, JobAction.PURGE))


@dataclass(frozen=True, slots=True)
class BulkOrder:
    """The action and its arguments."""

    action: JobAction
    reason: str | None = None
    until: datetime | None = None
    catch_up: bool = False
    override: bool = False
    tags: tuple[str, ...] = ()
    detach: bool = False
    force: bool = False
    owner: str | None = None  # name, id or address of the new owner


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome for one job."""

    id: JobId
    outcome: BulkOutcome
    error: FoliotError | None = None


async def apply_to_batch(
    tx: Tx, job_ids: Sequence[JobId], order: BulkOrder, scope: Scope, *, dry_run: bool
) -> list[JobOutcome]:
    if dry_run:
        rows = {row.job_id: row for row in await timers.read(tx, job_ids)}
        return [_judged(rows.get(job_id), job_id, order) for job_id in job_ids]
    if order.action in STOPS:
        return await _stopped(tx, job_ids, order, scope)
    if order.action in _IN_THE_GRAPH:
        await dependencies.lock_graph(tx)
    # Lock all timers in the order of ids before locking any job alone: this avoids deadlocks.
    await timers.lock_with_dependents(tx, job_ids)
    outcomes = []
    for job_id in job_ids:
        try:
            async with tx.part():
                outcomes.append(await _one(tx, job_id, order, scope))
        except Unavailable:
            raise
        except FoliotError as error:
            outcomes.append(refused(job_id, error))
    return outcomes


async def _stopped(tx: Tx, job_ids: Sequence[JobId], order: BulkOrder, scope: Scope) -> list[JobOutcome]:
    rows = await timers.lock(tx, job_ids)
    if scope.visible_owner is not None:  # the owner may have changed since the search
        owned = await jobs.list_owned(tx, job_ids, scope.visible_owner)
        rows = {job_id: row for job_id, row in rows.items() if job_id in owned}
    outcomes = [_judged(rows.get(job_id), job_id, order) for job_id in job_ids]
    stopping = [rows[each.id] for each in outcomes if each.outcome is BulkOutcome.DONE]
    if stopping:
        await job_status_steps.stop(
            tx, stopping, Stop(STOPS[order.action], order.reason, order.until), scope.actor
        )
    return outcomes


def _judged(row: TimerRow | None, job_id: JobId, order: BulkOrder) -> JobOutcome:
    """Judge the action by the status of the job."""
    if row is None:
        return refused(job_id, not_found("job"))
    if is_done(order.action, row.status, row.rules.spec.tags, frozenset(order.tags)):
        return JobOutcome(job_id, BulkOutcome.ALREADY)
    try:
        check_move(order.action, row.status)
    except IllegalMove as error:
        return refused(job_id, error)
    return JobOutcome(job_id, BulkOutcome.DONE)


async def _one(tx: Tx, job_id: JobId, order: BulkOrder, scope: Scope) -> JobOutcome:
    if has_effect_already(await require_visible_job(tx, job_id, scope), order):
        return JobOutcome(job_id, BulkOutcome.ALREADY)
    match order.action:
        case JobAction.RESUME | JobAction.ENABLE:
            await job_status_steps.resume_in(tx, job_id, scope, catch_up=order.catch_up)
        case JobAction.RUN:
            await run_steps.request_run(tx, job_id, scope, override=order.override)
        case JobAction.ARCHIVE:
            await job_status_steps.archive_in(tx, job_id, scope, detach=order.detach)
        case JobAction.RESTORE:
            await job_status_steps.restore_in(tx, job_id, scope)
        case JobAction.PURGE:
            await job_status_steps.purge_in(tx, job_id, scope, force=order.force, detach=order.detach)
        case JobAction.PAUSE | JobAction.DISABLE | JobAction.TAG | JobAction.UNTAG | JobAction.HAND_OVER:
            raise AssertionError(
                "stops go together; tags and owners are edits, each a transaction of its own"
            )
        case _ as never:
            assert_never(never)
    return JobOutcome(job_id, BulkOutcome.DONE)


def has_effect_already(job: StoredJob, order: BulkOrder) -> bool:
    return is_done(order.action, job.status, job.definition.spec.tags, frozenset(order.tags))


def refused(job_id: JobId, error: FoliotError) -> JobOutcome:
    return JobOutcome(
        job_id, BulkOutcome.NOT_FOUND if isinstance(error, NotFound) else BulkOutcome.FAILED, error
    )
