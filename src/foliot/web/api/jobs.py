"""/jobs: create, list and get jobs, and their next times."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic_core import to_json

from foliot.domain.definition import Definition
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.jobs import job_search, jobs
from foliot.services.jobs.jobs import JobDraft, WrittenJob
from foliot.web.api.params import (
    DEFAULT_LIMIT,
    Count,
    Cursor,
    Db,
    JobIdIn,
    JobQuery,
    Limit,
    Order,
    TheEgressPolicy,
    TimeCount,
)
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import Editor, Viewer
from foliot.web.mapping.definitions import DefinitionContext, definition_from
from foliot.web.mapping.handler_config import config_schema
from foliot.web.mapping.jobs import etag, job_json, job_out, upcoming_out
from foliot.web.preconditions import IfNoneMatch, matches_etag
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import DryRunOut
from foliot.wire.jobs import JobIn, JobOut
from foliot.wire.schedules import TimesOut
from foliot.wire.shape import CountedPage

routes = api_router("jobs")
ETAG = {"headers": {"ETag": {"description": "The revision of the job.", "schema": {"type": "string"}}}}


@routes.post("/jobs", status_code=201, responses={**dry_run_response(DryRunOut), 201: ETAG, **WITH_BODY})
async def create_job(
    job: JobIn, caller: Editor, reach: TheEgressPolicy, write: Writing
) -> JobOut | DryRunOut:
    """Create a job. Its first planned time is `next_run_at` of the answer."""

    async def define(draft: JobDraft) -> Definition:
        context = DefinitionContext(
            caller.at,
            caller.workspace.default_timezone,
            await draft.resolve_owner(caller.scope, job.owner, caller.holder.principal.id),
            schema=await config_schema(draft, job.type),
            reach=reach,
            workspace=caller.workspace.slug,
            defaults=await draft.load_defaults(),
        )
        return definition_from(job, context)

    async def verb(db: Database) -> WrittenJob:
        return await jobs.create(
            db, caller.scope, define, enabled=job.enabled, with_warnings=write.with_warnings
        )

    return await write.job(None, verb, Hint.TIMERS)


@routes.get("/jobs", response_model=None, responses={200: {"model": CountedPage[JobOut]}})
async def list_jobs(
    caller: Viewer,
    db: Db,
    query: JobQuery,
    order: Order,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    count: Count = False,
) -> Response:
    """List the jobs of the workspace, newest first. Archived jobs are listed only if `status` names them."""
    page = await job_search.jobs(
        db, caller.scope, query, order=order, cursor=cursor, limit=limit, count=count
    )
    found: dict[str, Any] = {
        "items": [job_json(each) for each in page.items],
        "next_cursor": page.next_cursor,
    }
    if page.total is not None:
        found |= {"total": page.total, "more": page.more}
    return Response(to_json(found), media_type="application/json")


@routes.get(
    "/jobs/{job_id}",
    response_model=JobOut,
    responses={200: ETAG, 304: {"description": "As it was; no body"}, **NOT_FOUND},
)
async def get_job(
    job_id: JobIdIn,
    caller: Viewer,
    db: Db,
    response: Response,
    if_none_match: IfNoneMatch = None,
    warnings: Annotated[
        bool, Query(description="Also its warnings, as answers to writes have them.")
    ] = False,
) -> JobOut | Response:
    """Get a job."""
    if warnings:
        written = await job_search.written(db, caller.scope, job_id)
        response.headers["ETag"] = etag(written.job)
        return job_out(written.job, written.warnings)
    record = await job_search.job(db, caller.scope, job_id)
    current = {"ETag": etag(record)}
    if matches_etag(if_none_match, current["ETag"]):
        return Response(status_code=304, headers=current)
    return Response(to_json(job_json(record)), headers=current, media_type="application/json")


@routes.get("/jobs/{job_id}/next", responses=NOT_FOUND)
async def next_times(job_id: JobIdIn, caller: Viewer, db: Db, n: TimeCount = 5) -> TimesOut:
    """List its next times. Empty while it is stopped; with a fixed delay only the first is known."""
    ahead = await job_search.ahead(db, caller.scope, job_id, n)
    return upcoming_out(ahead)
