"""/jobs/bulk and /jobs/batch-delete: one action on many jobs."""

from __future__ import annotations

from foliot.domain.access import Permission
from foliot.domain.bulk import EDITS, JobAction
from foliot.domain.filters import Query
from foliot.domain.ids import JobId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller, require_permission
from foliot.services.jobs import bulk
from foliot.web.api.params import Announcer, Db, read_job_filter
from foliot.web.auth import Editor, Operator
from foliot.web.routes import CONFLICT, WITH_BODY, api_router
from foliot.wire.bulk import BatchDeleteIn, BulkIn, BulkOut, BulkResult, Targeted

routes = api_router("jobs")
REFUSALS = {**CONFLICT, **WITH_BODY}
_STARTING = frozenset((JobAction.RESUME, JobAction.ENABLE, JobAction.RUN))


@routes.post("/jobs/bulk", responses=REFUSALS)
async def act_on_many(asked: BulkIn, caller: Operator, db: Db, tell: Announcer) -> BulkOut:
    """Pause, resume, disable, enable, archive, restore, run, tag, untag or hand over many jobs, named by their ids or found by a filter.

    By filter it needs `expected_count`, so that nothing is done to jobs you have not seen. In one call at most 10,000, and as many as ten
    seconds allow: what `remaining` counts is done by sending it again with `after`. Tags, owners and archiving need an editor. A job that cannot
    is reported and stops no other. A repeat with the same `Idempotency-Key` after a crash goes on where the first one stopped; it counts
    all, and its `results` name only those it looked at itself.
    """
    action, args = JobAction(asked.action), asked.args
    if action in EDITS:
        require_permission(caller, Permission.EDITOR)
    order = bulk.BulkOrder(
        action,
        reason=args.reason,
        until=args.until,
        catch_up=args.catch_up,
        override=args.override,
        tags=tuple(args.tags),
        detach=args.detach,
        owner=args.owner if action is JobAction.HAND_OVER else None,
    )
    answer = await _acted(db, caller, asked, order)
    if action in _STARTING and not asked.dry_run:
        tell(Hint.TIMERS)
        tell(Hint.READY)
    return answer


@routes.post("/jobs/batch-delete", responses=REFUSALS)
async def delete_many(asked: BatchDeleteIn, caller: Editor, db: Db, tell: Announcer) -> BulkOut:
    """Archive many jobs, or remove them with their history (`purge`: administrators)."""
    if asked.purge:
        require_permission(caller, Permission.ADMIN)
    action = JobAction.PURGE if asked.purge else JobAction.ARCHIVE
    answer = await _acted(db, caller, asked, bulk.BulkOrder(action, detach=asked.detach, force=asked.force))
    if asked.force:
        tell(Hint.CANCELS)
    return answer


async def _acted(db: Database, caller: Caller, asked: Targeted, order: bulk.BulkOrder) -> BulkOut:
    ids = None if asked.ids is None else tuple(JobId(each) for each in asked.ids)
    query = Query() if asked.q is None else read_job_filter(asked.q, caller)
    done = await bulk.act(
        db,
        caller.scope,
        bulk.BulkTarget(
            ids, query, asked.expected_count, None if asked.after is None else JobId(asked.after)
        ),
        order,
        dry_run=asked.dry_run,
    )
    return BulkOut.from_value(
        done.tally,
        action=order.action.value,
        dry_run=asked.dry_run,
        remaining=done.remaining,
        next_after=done.tally.reached if done.remaining else None,
        results=[_result(each) for each in done.listed],
    )


def _result(result: bulk.JobOutcome) -> BulkResult:
    if (error := result.error) is None:
        return BulkResult(id=result.id, outcome=result.outcome.value)
    return BulkResult(
        id=result.id, outcome=result.outcome.value, code=error.code, message=error.message, hint=error.hint
    )
