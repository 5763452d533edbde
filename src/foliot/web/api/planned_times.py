"""/jobs/{id}/skip-next and backfill: planned times that are to pass, and those that went by."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from foliot.domain.ids import JobId
from foliot.services import Database
from foliot.services.dry_run import rehearsed
from foliot.services.hints import Hint
from foliot.services.jobs import job_search
from foliot.services.runs import backfill, run_control
from foliot.web.api.dry_run import DryRun, done_or_tried
from foliot.web.api.params import Db, JobIdIn, Tell
from foliot.web.auth import Operator
from foliot.web.mapping.jobs import times_out
from foliot.web.preconditions import Seen
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import DryRunOut
from foliot.wire.jobs import BackfillIn, BackfillOut, JobOut, SkipNextIn, SkipNextOut

routes = api_router("jobs")
JUST_ONE = SkipNextIn()
SHOWN = 100
REFUSALS = {**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY}


@routes.post("/jobs/{job_id}/skip-next", responses=REFUSALS)
async def skip_next_times(
    job_id: JobIdIn,
    caller: Operator,
    db: Db,
    seen: Seen,
    asked: Annotated[SkipNextIn, Body()] = JUST_ONE,
    dry_run: DryRun = False,
) -> SkipNextOut:
    """Let the next planned time pass, the next `n`, or all `until` an instant. Each is recorded as skipped when it comes."""

    async def act(db: Database) -> run_control.SkipNext:
        return await run_control.skip_next(
            db, caller.scope.expecting(seen), job_id, reason=asked.reason, n=asked.n, until=asked.until
        )

    found = await rehearsed(db, caller.workspace_id, act) if dry_run else await act(db)
    record = await job_search.job(db, caller.scope, job_id)
    return SkipNextOut(
        dry_run=dry_run,
        count=len(found.times),
        skipped=times_out(record.definition.spec.schedule, found.times[:SHOWN]),
        next_run_at=None if found.following is None else found.following.planned_for,
        reason=found.reason,
    )


@routes.delete("/jobs/{job_id}/skip-next", responses={**NOT_FOUND, **CONFLICT, **STALE})
async def undo_skip_next(
    job_id: JobIdIn, caller: Operator, db: Db, seen: Seen, response: Response, dry_run: DryRun = False
) -> JobOut | DryRunOut:
    """No planned time is to pass after all."""

    async def act(db: Database) -> JobId:
        await run_control.undo_skip_next(db, caller.scope.expecting(seen), job_id)
        return job_id

    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run)


@routes.post("/jobs/{job_id}/backfill", responses=REFUSALS)
async def backfill_job(
    job_id: JobIdIn, asked: Annotated[BackfillIn, Body()], caller: Operator, db: Db, seen: Seen, tell: Tell
) -> BackfillOut:
    """Runs for planned times of the past that have no record. `dry_run` counts them and names the first and the last."""
    made = await backfill.backfill(
        db,
        caller.scope.expecting(seen),
        job_id,
        asked.start,
        asked.to,
        dry_run=asked.dry_run,
        most=asked.max,
        oldest_first=asked.order == "oldest_first",
        skipped=asked.skipped,
    )
    if made.run_ids:
        tell(Hint.READY)
    return BackfillOut(
        dry_run=asked.dry_run, count=made.count, first=made.first, last=made.last, run_ids=list(made.run_ids)
    )
