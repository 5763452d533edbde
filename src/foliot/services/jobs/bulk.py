"""One action on many jobs, named or found by a query: in the order of ids, in batches of one transaction each.

Each batch stores the progress beside the Idempotency-Key, so that a repeat after a crash continues. A call lasts some
seconds at most; the answer says how many jobs are left and after which job to continue.

Why: docs/decisions/605-bulk-operations.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from foliot.clock import monotonic
from foliot.domain.access import Actor, Scope
from foliot.domain.bulk import BulkOutcome, JobAction, check_expected_count, tags_after
from foliot.domain.definition import Definition
from foliot.domain.errors import FoliotError, Invalid, Unavailable, not_found
from foliot.domain.filters import Query, Term
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobStatus
from foliot.services.identity.quota_steps import check_restored_quota
from foliot.services.jobs.bulk_steps import (
    EDITING,
    STOPS,
    BulkOrder,
    JobOutcome,
    apply_to_batch,
    has_effect_already,
    refused,
)
from foliot.services.jobs.job_edits import edit
from foliot.services.jobs.jobs import JobDraft
from foliot.services.jobs.owner_steps import resolve_owner
from foliot.services.jobs.search_steps import resolve_owner_terms
from foliot.storage.identity import idempotency
from foliot.storage.jobs import job_search
from foliot.storage.tx import Database, Role, Tx

__all__ = ["BulkOrder", "JobOutcome"]

MOST = 10_000
MOST_TAGS = 50
PIECE = 50  # jobs in one transaction
LARGE_PIECE = 500  # jobs, when one statement serves them all
LASTS = 10.0  # seconds; after that no batch begins
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class BulkTarget:
    """The jobs of a bulk action: named ones, or those that a query finds, with the count the caller expects; only ids above `after`."""

    ids: tuple[JobId, ...] | None = None
    query: Query = Query()
    expected_count: int | None = None
    after: JobId | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """The progress. Jobs that are not `passed` are left."""

    found: int
    reached: JobId = JobId(_FIRST)  # the last job that was handled
    passed: int = 0
    done: int = 0
    already: int = 0
    failed: int = 0

    def stored(self) -> Mapping[str, Any]:
        return asdict(self) | {"reached": str(self.reached)}


@dataclass(slots=True)
class BulkProgress:
    tally: Tally
    listed: list[JobOutcome] = field(default_factory=list)  # all except the jobs that were changed

    def add(self, result: JobOutcome) -> None:
        tally = self.tally
        match result.outcome:
            case BulkOutcome.DONE:
                self.tally = replace(tally, done=tally.done + 1)
                return
            case BulkOutcome.ALREADY:
                self.tally = replace(tally, already=tally.already + 1)
            case BulkOutcome.FAILED | BulkOutcome.NOT_FOUND:
                self.tally = replace(tally, failed=tally.failed + 1)
            case _ as never:
                assert_never(never)
        self.listed.append(result)

    def pass_by(self, piece: list[JobId]) -> None:
        self.tally = replace(self.tally, reached=piece[-1], passed=self.tally.passed + len(piece))

    @property
    def remaining(self) -> int:
        return self.tally.found - self.tally.passed


async def act(
    database: Database,
    scope: Scope,
    target: BulkTarget,
    order: BulkOrder,
    *,
    dry_run: bool = False,
    lasts: float = LASTS,
) -> BulkProgress:
    """Apply the action to all jobs, or as many as the time allows. A dry run judges each job by its current state."""
    ends_by = monotonic() + lasts
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        _check(order, tx.now)
        if order.owner is not None:
            owner = await resolve_owner(tx, scope, order.owner, None)
            order = replace(order, owner=str(owner))
        before = await _before(tx, scope.actor)
        found = await _found(tx, target, scope)
    ahead = [job_id for job_id in found if before is None or job_id > before.reached]
    if target.ids is None:
        check_expected_count(
            "jobs", target.expected_count, len(ahead) + (before.passed if before else 0), dry_run=dry_run
        )
    done = BulkProgress(
        Tally(len(found)) if before is None else replace(before, found=before.passed + len(ahead))
    )
    if target.ids is not None and before is None:
        for missing in dict.fromkeys(each for each in target.ids if each not in set(found)):
            if target.after is None or missing > target.after:
                done.add(JobOutcome(missing, BulkOutcome.NOT_FOUND, not_found("job")))
    size = LARGE_PIECE if order.action in STOPS or dry_run else PIECE
    one_by_one = order.action in EDITING and not dry_run
    # The idempotency key closes when the last piece is done, not with the first job.
    each_scope = replace(scope, actor=replace(scope.actor, claim=None))
    for piece in (ahead[at : at + size] for at in range(0, len(ahead), size)):
        if one_by_one:
            for job_id in piece:
                done.add(await _edit_one(database, each_scope, job_id, order))
        async with database.tx(Role.APP, scope.workspace_id) as tx:
            if not one_by_one:
                for result in await apply_to_batch(tx, piece, order, each_scope, dry_run=dry_run):
                    done.add(result)
            if order.action is JobAction.RESTORE and not dry_run:
                await check_restored_quota(database, tx, scope.actor)
            done.pass_by(piece)
            is_over = done.remaining <= 0 or monotonic() >= ends_by
            if not dry_run:
                await _keep(tx, scope.actor, order, done.tally, is_over=is_over)
        if is_over:
            break
    return done


def _check(order: BulkOrder, now: datetime) -> None:
    if order.action is JobAction.HAND_OVER:
        if order.owner is None:
            raise Invalid("Who gets the jobs?", pointer="/args/owner", hint='Such as {"owner": "frank"}.')
    elif order.action in EDITING and not order.tags:
        raise Invalid("Which tags?", pointer="/args/tags", hint='Such as {"tags": ["billing"]}.')
    if order.until is not None and order.until <= now:
        raise Invalid(
            "A pause ends in the future.", pointer="/args/until", hint="Leave it out to pause until resumed."
        )


async def _before(tx: Tx, by: Actor) -> Tally | None:
    """Load the progress of the same request before a crash."""
    stored = None if by.claim is None else await idempotency.load_progress(tx, by.claim)
    return None if stored is None else Tally(**{**stored, "reached": JobId(UUID(stored["reached"]))})


async def _keep(tx: Tx, by: Actor, order: BulkOrder, tally: Tally, *, is_over: bool) -> None:
    if by.claim is None:
        return
    await idempotency.store_progress(tx, by.claim, tally.stored())
    if is_over:
        summary = f"{tally.done} done, {tally.already} so already, {tally.failed} failed"
        await idempotency.mark_done(tx, by.claim, (f"{order.action.value} of many jobs:", summary))


async def _found(tx: Tx, target: BulkTarget, scope: Scope) -> list[JobId]:
    query, most = target.query, MOST + 1
    if target.ids is not None:
        query, most = Query((Term("id", target.ids), Term("status", tuple(JobStatus)))), MOST
    found = await job_search.find_ids(tx, await resolve_owner_terms(tx, query, scope), most, target.after)
    if len(found) > MOST:
        raise Invalid(
            f"This filter finds more than {MOST:,} jobs.", pointer="/q", hint="Narrow it, and do it in parts."
        )
    return found


class _AlreadyError(Exception):
    """The job has the tags, or the owner, already."""


async def _edit_one(database: Database, scope: Scope, job_id: JobId, order: BulkOrder) -> JobOutcome:
    """Edit the tags or the owner of one job."""

    async def edited(draft: JobDraft) -> Definition:
        assert draft.before is not None
        definition = draft.before.definition
        if order.action is JobAction.HAND_OVER:
            owner_id = await draft.resolve_owner(scope, order.owner, None)
            if owner_id == definition.owner_id:
                raise _AlreadyError
            return replace(definition, owner_id=owner_id)
        if has_effect_already(draft.before, order):
            raise _AlreadyError
        tags = tags_after(order.action, definition.spec.tags, order.tags)
        if len(tags) > MOST_TAGS:
            raise Invalid(f"A job has at most {MOST_TAGS} tags.", pointer="/args/tags")
        return replace(definition, spec=replace(definition.spec, tags=tags))

    try:
        # The owner is not written in code, so no app would change it back.
        await edit(database, scope, job_id, edited, force=order.action is JobAction.HAND_OVER)
    except _AlreadyError:
        return JobOutcome(job_id, BulkOutcome.ALREADY)
    except Unavailable:
        raise
    except FoliotError as error:
        return refused(job_id, error)
    return JobOutcome(job_id, BulkOutcome.DONE)
