"""/jobs/{id}/run, pause, resume, disable: what an operator does with a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from foliot.domain.ids import JobId, RunId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.jobs import job_status
from foliot.services.runs import history, run_control
from foliot.web.api.dry_run import DryRun, done_or_tried, only_tried, tried_run
from foliot.web.api.params import Db, JobIdIn, Tell
from foliot.web.auth import Operator
from foliot.web.mapping.jobs import run_out
from foliot.web.preconditions import Seen
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import DisableIn, JobOut, PauseIn, ResumeIn, RunIn
from foliot.wire.runs import RunOut

routes = api_router("jobs")
JUST_RUN, JUST_PAUSE, JUST_RESUME, JUST_DISABLE = (
    RunIn(),
    PauseIn(),
    ResumeIn(),
    DisableIn(),
)  # none is needed
REFUSALS = {**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY}


@routes.post("/jobs/{job_id}/run", status_code=201, responses={**only_tried(RunDryRunOut), **REFUSALS})
async def run_job(
    job_id: JobIdIn,
    caller: Operator,
    db: Db,
    seen: Seen,
    tell: Tell,
    response: Response,
    asked: Annotated[RunIn, Body()] = JUST_RUN,
    dry_run: DryRun = False,
) -> RunOut | RunDryRunOut:
    """Run it now, whatever its schedule says; behind a run that is live, it waits."""

    async def act(db: Database) -> RunId:
        return await run_control.run_now(
            db, caller.scope.expecting(seen), job_id, input=asked.input, override=asked.override
        )

    if dry_run:
        response.status_code = 200
        return await tried_run(db, caller, act)
    run_id = await act(db)
    tell(Hint.READY)
    response.headers["Location"] = f"/api/v1/runs/{run_id}"
    return run_out(await history.run(db, caller.scope, run_id))


@routes.post("/jobs/{job_id}/pause", responses=REFUSALS)
async def pause_job(
    job_id: JobIdIn,
    caller: Operator,
    db: Db,
    seen: Seen,
    response: Response,
    asked: Annotated[PauseIn, Body()] = JUST_PAUSE,
    dry_run: DryRun = False,
) -> JobOut | DryRunOut:
    """No run starts by schedule until it is resumed, or `until` has come. What runs now runs on."""

    async def act(db: Database) -> JobId:
        await job_status.pause(
            db, caller.scope.expecting(seen), job_id, reason=asked.reason, until=asked.until
        )
        return job_id

    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run)


@routes.post("/jobs/{job_id}/disable", responses=REFUSALS)
async def disable_job(
    job_id: JobIdIn,
    caller: Operator,
    db: Db,
    seen: Seen,
    response: Response,
    asked: Annotated[DisableIn, Body()] = JUST_DISABLE,
    dry_run: DryRun = False,
) -> JobOut | DryRunOut:
    """Switch it off: as a pause without an end. `resume` switches it on again."""

    async def act(db: Database) -> JobId:
        await job_status.disable(db, caller.scope.expecting(seen), job_id, reason=asked.reason)
        return job_id

    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run)


@routes.post("/jobs/{job_id}/resume", responses=REFUSALS)
async def resume_job(
    job_id: JobIdIn,
    caller: Operator,
    db: Db,
    seen: Seen,
    tell: Tell,
    response: Response,
    asked: Annotated[ResumeIn, Body()] = JUST_RESUME,
    dry_run: DryRun = False,
) -> JobOut | DryRunOut:
    """Back to work. What went by meanwhile is one record, and only `catch_up` runs any of it."""

    async def act(db: Database) -> JobId:
        await job_status.resume(db, caller.scope.expecting(seen), job_id, catch_up=asked.catch_up)
        return job_id

    hints = (Hint.TIMERS, Hint.READY)
    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run, tell=tell, hints=hints)
