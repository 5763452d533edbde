"""/jobs/{id}/run, pause, disable, resume, skip-next and backfill: operate a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body

from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.jobs import job_search, job_status
from foliot.services.runs import backfill, run_control
from foliot.web.api.params import Announcer, Db, JobIdIn
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import Editor, Operator
from foliot.web.mapping.jobs import skip_next_out
from foliot.web.preconditions import ExpectedRevision
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import (
    BackfillIn,
    BackfillOut,
    DisableIn,
    JobOut,
    PauseIn,
    ResumeIn,
    RunIn,
    SkipNextIn,
    SkipNextOut,
)
from foliot.wire.runs import RunOut

routes = api_router("jobs")
# Bodies that may be left out.
NO_RUN, NO_PAUSE, NO_RESUME, NO_DISABLE, NO_SKIP = RunIn(), PauseIn(), ResumeIn(), DisableIn(), SkipNextIn()
REFUSALS = {**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY}


@routes.post("/jobs/{job_id}/run", status_code=201, responses={**dry_run_response(RunDryRunOut), **REFUSALS})
async def run_job(
    job_id: JobIdIn,
    caller: Operator,
    seen: ExpectedRevision,
    write: Writing,
    asked: Annotated[RunIn, Body()] = NO_RUN,
) -> RunOut | RunDryRunOut:
    """Start a run now, independent of the schedule. Behind a live run it waits."""
    scope = caller.scope.expecting(seen)
    return await write.run(
        lambda db: run_control.run_now(db, scope, job_id, input=asked.input, override=asked.override),
        Hint.READY,
        creates=True,
    )


@routes.post("/jobs/{job_id}/pause", responses=REFUSALS)
async def pause_job(
    job_id: JobIdIn,
    caller: Operator,
    seen: ExpectedRevision,
    write: Writing,
    asked: Annotated[PauseIn, Body()] = NO_PAUSE,
) -> JobOut | DryRunOut:
    """Stop the schedule until `resume`, or until the instant `until`. Runs that are under way continue.

    The pause of a paused job gets this end; its reason stays unless another is given.
    """
    scope = caller.scope.expecting(seen)
    return await write.job(
        job_id,
        lambda db: job_status.pause(
            db, scope, job_id, reason=asked.reason, until=asked.until, drop_queued=asked.drop_queued
        ),
    )


@routes.post("/jobs/{job_id}/disable", responses=REFUSALS)
async def disable_job(
    job_id: JobIdIn,
    caller: Operator,
    seen: ExpectedRevision,
    write: Writing,
    asked: Annotated[DisableIn, Body()] = NO_DISABLE,
) -> JobOut | DryRunOut:
    """Disable the job: a pause without an end. `resume` enables it again."""
    scope = caller.scope.expecting(seen)
    return await write.job(job_id, lambda db: job_status.disable(db, scope, job_id, reason=asked.reason))


@routes.post("/jobs/{job_id}/resume", responses=REFUSALS)
async def resume_job(
    job_id: JobIdIn,
    caller: Operator,
    seen: ExpectedRevision,
    write: Writing,
    asked: Annotated[ResumeIn, Body()] = NO_RESUME,
) -> JobOut | DryRunOut:
    """Start the schedule again. Missed times become one record, and only `catch_up` runs any of them."""
    scope, catch_up = caller.scope.expecting(seen), asked.catch_up
    return await write.job(
        job_id, lambda db: job_status.resume(db, scope, job_id, catch_up=catch_up), Hint.TIMERS, Hint.READY
    )


@routes.post("/jobs/{job_id}/restore", responses=REFUSALS)
async def restore_job(
    job_id: JobIdIn, caller: Editor, seen: ExpectedRevision, write: Writing
) -> JobOut | DryRunOut:
    """Bring the job back from the archive, with its history. It is disabled until `resume`."""
    scope = caller.scope.expecting(seen)
    return await write.job(job_id, lambda db: job_status.restore(db, scope, job_id))


@routes.post("/jobs/{job_id}/skip-next", responses=REFUSALS)
async def skip_next_times(
    job_id: JobIdIn,
    caller: Operator,
    db: Db,
    seen: ExpectedRevision,
    write: Writing,
    asked: Annotated[SkipNextIn, Body()] = NO_SKIP,
) -> SkipNextOut:
    """Skip the next planned time, the next `n`, or all `until` an instant. Each gets a skip record when it is due."""

    async def verb(db: Database) -> run_control.SkippedTimes:
        scope = caller.scope.expecting(seen)
        return await run_control.skip_next(
            db, scope, job_id, reason=asked.reason, n=asked.n, until=asked.until
        )

    skipped = await (write.roll_back(verb) if write.dry_run else verb(db))
    job = await job_search.job(db, caller.scope, job_id)
    return skip_next_out(job, skipped, dry_run=write.dry_run)


@routes.delete("/jobs/{job_id}/skip-next", responses={**NOT_FOUND, **CONFLICT, **STALE})
async def undo_skip_next(
    job_id: JobIdIn, caller: Operator, seen: ExpectedRevision, write: Writing
) -> JobOut | DryRunOut:
    """Cancel the skips that are planned."""
    scope = caller.scope.expecting(seen)
    return await write.job(job_id, lambda db: run_control.undo_skip_next(db, scope, job_id))


@routes.post("/jobs/{job_id}/backfill", responses=REFUSALS)
async def backfill_job(
    job_id: JobIdIn,
    asked: Annotated[BackfillIn, Body()],
    caller: Operator,
    db: Db,
    seen: ExpectedRevision,
    tell: Announcer,
) -> BackfillOut:
    """Create runs for past planned times that have no record. `dry_run` counts them and names the first and the last."""
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
