"""/runs: list, count, get, explain, cancel and retry runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response
from pydantic_core import to_json

from foliot.domain.errors import NotFound
from foliot.domain.ids import JobId, RunId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.runs import bulk, explain, history, run_control
from foliot.web.api.params import (
    DEFAULT_LIMIT,
    Announcer,
    Cursor,
    Db,
    JobIdIn,
    Limit,
    RunIdIn,
    RunQuery,
    read_run_filter,
)
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import Operator, Viewer
from foliot.web.mapping.jobs import attempt_out, recent_run_json, run_out
from foliot.web.mapping.reports import explanation_out, run_summary_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.bulk import BulkResult, RunBulkIn, RunBulkOut
from foliot.wire.dry_run import RunDryRunOut
from foliot.wire.instants import Id, Moment
from foliot.wire.reports import ExplanationOut
from foliot.wire.runs import AttemptsOut, CancelIn, RecentOut, RetryIn, RunOut, RunSummaryOut
from foliot.wire.shape import Page

routes = api_router("runs")
MOST_JOBS, MOST_RECENT = 100, 60  # of one request for recent runs
JUST_CANCEL, JUST_RETRY = CancelIn(), RetryIn()  # the body may be left out
REFUSALS = {**NOT_FOUND, **CONFLICT, **WITH_BODY}


@routes.get("/runs")
async def list_runs(
    caller: Viewer, db: Db, wanted: RunQuery, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[RunOut]:
    """List the runs of the workspace, newest record first. A filter that matches little may give a page that is short, or
    empty, and still has a next one.
    """
    page = await history.of_workspace(db, caller.scope, wanted, cursor=cursor, limit=limit)
    return Page[RunOut](items=[run_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/runs/summary")
async def summarize_runs(
    caller: Viewer,
    db: Db,
    wanted: RunQuery,
    buckets: Annotated[
        int, Query(ge=1, le=history.MOST_BUCKETS, description="How many stretches of time at most.")
    ] = history.BUCKETS,
) -> RunSummaryOut:
    """Count the runs that a filter finds: by planned time, by status, and by error, so that the same error of many runs is one line.
    Reads the newest 5,000 records that the filter may find, and says where it stopped.
    """
    return run_summary_out(await history.summarize(db, caller.scope, wanted, buckets=buckets))


@routes.get("/jobs/{job_id}/runs", responses=NOT_FOUND)
async def list_job_runs(
    job_id: JobIdIn,
    caller: Viewer,
    db: Db,
    wanted: RunQuery,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[RunOut]:
    """List the records of its planned times, newest first: runs and skips."""
    page = await history.of_job(db, caller.scope, job_id, wanted, cursor=cursor, limit=limit)
    return Page[RunOut](items=[run_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/recent-runs", response_model=None, responses={200: {"model": RecentOut}})
async def list_recent_runs(
    caller: Viewer,
    db: Db,
    job: Annotated[list[Id], Query(min_length=1, max_length=MOST_JOBS, description="Ids of jobs.")],
    limit: Annotated[int, Query(ge=1, le=MOST_RECENT, description="Records of each job.")] = MOST_RECENT,
    since: Annotated[Moment | None, Query(description="Planned from this instant on.")] = None,
) -> Response:
    """List the newest records of several jobs in few words, such as for a strip of marks beside each job of a list."""
    found = await history.recent(db, caller.scope, [JobId(each) for each in job], limit, since)
    items = [
        {"job_id": job_id, "runs": [recent_run_json(each) for each in runs]} for job_id, runs in found.items()
    ]
    return Response(to_json({"items": items}), media_type="application/json")


@routes.get("/runs/{run_id}", responses=NOT_FOUND)
async def get_run(run_id: RunIdIn, caller: Viewer, db: Db) -> RunOut:
    """Get one run, with its newest attempts."""
    return run_out(await history.run(db, caller.scope, run_id))


@routes.get("/runs/{run_id}/attempts", responses=NOT_FOUND)
async def list_attempts(run_id: RunIdIn, caller: Viewer, db: Db) -> AttemptsOut:
    """List all attempts: worker, fence and result."""
    tried = await history.attempts_of(db, caller.scope, run_id)
    return AttemptsOut(items=[attempt_out(each) for each in tried])


@routes.get("/runs/{run_id}/explain", responses=NOT_FOUND)
async def explain_run(run_id: RunIdIn, caller: Viewer, db: Db) -> ExplanationOut:
    """Explain the state of the run; if it waits, for what, and its position in the queue of its workspace."""
    return explanation_out(await explain.explain_run(db, caller.scope, run_id))


@routes.post("/runs/{run_id}/cancel", responses=REFUSALS)
async def cancel_run(
    run_id: RunIdIn, caller: Operator, write: Writing, asked: Annotated[CancelIn, Body()] = JUST_CANCEL
) -> RunOut | RunDryRunOut:
    """End the run. One that no worker holds ends at once. One that is running gets a request to stop: it shows `cancel_requested_at`, and
    after half a minute the server ends it. `force` does not wait: the run ends at once and its worker drops it, usually within a second.
    How far the work had come is then unknown: the job's next run may start before the work of this one has stopped, or run beside it
    where its worker hangs.
    """

    async def verb(db: Database) -> RunId:
        await run_control.cancel_run(db, caller.scope, run_id, reason=asked.reason, force=asked.force)
        return run_id

    return await write.run(verb, Hint.CANCELS, Hint.READY)


@routes.post(
    "/runs/{run_id}/retry", status_code=201, responses={**dry_run_response(RunDryRunOut), **REFUSALS}
)
async def retry_run(
    run_id: RunIdIn, caller: Operator, write: Writing, asked: Annotated[RetryIn, Body()] = JUST_RETRY
) -> RunOut | RunDryRunOut:
    """Repeat a finished run for its planned time and with its input, as a new run with `retry_of`. The first run keeps its result."""

    async def verb(db: Database) -> RunId:
        return await run_control.retry_run(
            db, caller.scope, run_id, input=asked.input, override=asked.override
        )

    return await write.run(verb, Hint.READY, creates=True)


@routes.post("/runs/bulk", responses={**CONFLICT, **WITH_BODY})
async def act_on_many_runs(asked: RunBulkIn, caller: Operator, db: Db, tell: Announcer) -> RunBulkOut:
    """Retry or cancel many runs, named by their ids or found by a filter.

    By filter it needs `expected_count`, so that nothing is done to runs you have not seen. One call takes at most 500 runs. A run that cannot
    is reported and stops no other. A repeat with the same `Idempotency-Key` does nothing twice.
    """
    ids = None if asked.ids is None else tuple(RunId(each) for each in asked.ids)
    filters = read_run_filter(asked.q, caller)
    order = bulk.RunBulkOrder(
        bulk.RunAction(asked.action), ids, filters, asked.expected_count, asked.reason, asked.override
    )
    done = await bulk.act(db, caller.scope, order, dry_run=asked.dry_run)
    if not asked.dry_run:
        tell(Hint.READY)
        tell(Hint.CANCELS)
    return RunBulkOut.from_value(
        done,
        action=asked.action,
        dry_run=asked.dry_run,
        failed=len(done.refused),
        results=[
            BulkResult(
                id=run_id,
                outcome="not_found" if isinstance(error, NotFound) else "failed",
                code=error.code,
                message=error.message,
                hint=error.hint,
            )
            for run_id, error in done.refused
        ],
    )
