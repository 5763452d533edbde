"""/jobs/{id} by PUT, PATCH and DELETE, its revisions, and the way back to one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Body, Query, Response

from foliot.domain.access import Permission
from foliot.domain.definition import Definition
from foliot.domain.ids import JobId
from foliot.handlers.dependencies import EgressPolicy
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller, admit
from foliot.services.jobs import job_edits, job_search, job_status, revisions
from foliot.services.jobs.jobs import JobDraft, WrittenJob
from foliot.web.api.dry_run import DryRun, done_or_tried, only_tried, shown, tried
from foliot.web.api.jobs import ETAG
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, JobIdIn, Limit, Tell, TheReach
from foliot.web.auth import Editor, Viewer
from foliot.web.mapping.definitions import DefinitionContext, definition_of
from foliot.web.mapping.handler_config import config_schema
from foliot.web.mapping.job_patch import Written, patched, replaced
from foliot.web.mapping.jobs import job_out, revision_out
from foliot.web.preconditions import IfMatch, Seen, seen_revision
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import DryRunOut
from foliot.wire.jobs import JobOut
from foliot.wire.pages import Page
from foliot.wire.revisions import RevertIn, RevisionOut

routes = api_router("jobs")
REFUSALS = {200: ETAG, **NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY}
WHOLE = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobIn"}}}}}
RevisionNote = Annotated[
    str | None,
    Query(min_length=1, max_length=1_000, description="Why, for whoever reads the revisions."),
]
Force = Annotated[bool, Query(description="Even if the job is managed by code, which may change it back.")]
Given = Annotated[dict[str, Any], Body(description="The job as a GET answers with it.")]
Patch = Annotated[
    dict[str, Any],
    Body(
        description="A merge patch (RFC 7396) on what a GET answers with: null gives a field its default.",
        examples=[{"timeout": "5m", "schedule": {"expr": "0 7 * * *"}}],
    ),
]


@routes.put("/jobs/{job_id}", responses=REFUSALS, openapi_extra=WHOLE)
async def replace_job(
    job_id: JobIdIn,
    job: Given,
    caller: Editor,
    db: Db,
    tell: Tell,
    response: Response,
    reach: TheReach,
    revision_note: RevisionNote = None,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
    force: Force = False,
) -> JobOut | DryRunOut:
    """Put a whole definition in place; what is left out is its default. Read-only fields may come along as they are."""
    write = _Write(caller, job, replaced, if_match, reach)

    async def act(db: Database) -> WrittenJob:
        return await job_edits.edit(
            db, caller.scope, job_id, write.define, note=revision_note, force=force, with_warnings=not dry_run
        )

    hints = (Hint.TIMERS,)
    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run, tell=tell, hints=hints)


@routes.patch("/jobs/{job_id}", responses=REFUSALS)
async def patch_job(
    job_id: JobIdIn,
    patch: Patch,
    caller: Editor,
    db: Db,
    tell: Tell,
    response: Response,
    reach: TheReach,
    revision_note: RevisionNote = None,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
    force: Force = False,
) -> JobOut | DryRunOut:
    """Change some fields. A schedule in other words or of another kind takes the place of the old one, in its zone."""
    write = _Write(caller, patch, patched, if_match, reach)

    async def act(db: Database) -> WrittenJob:
        return await job_edits.edit(
            db, caller.scope, job_id, write.define, note=revision_note, force=force, with_warnings=not dry_run
        )

    hints = (Hint.TIMERS,)
    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run, tell=tell, hints=hints)


@routes.delete(
    "/jobs/{job_id}",
    status_code=204,
    response_model=None,
    responses={
        **only_tried(DryRunOut),
        **NOT_FOUND,
        **CONFLICT,
        **STALE,
    },
)
async def delete_job(
    job_id: JobIdIn,
    caller: Editor,
    db: Db,
    tell: Tell,
    purge: Annotated[
        bool, Query(description="Remove it with its history, for good: administrators.")
    ] = False,
    detach: Annotated[bool, Query(description="Take it out of the jobs that depend on it.")] = False,
    force: Annotated[bool, Query(description="With purge: even while runs are under way.")] = False,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response | None:
    """Archive it: nothing of it runs again, and its history stays."""
    if purge:
        admit(caller, Permission.ADMIN)

    async def act(db: Database) -> JobId:
        found = await job_search.job(db, caller.scope, job_id)
        scope = caller.scope.expecting(seen_revision(if_match, found.revision))
        if purge:
            await job_status.purge(
                db,
                scope,
                job_id,
                force=force,
                detach=detach,
            )
        else:
            await job_status.archive(
                db,
                scope,
                job_id,
                detach=detach,
            )
        return job_id

    if dry_run:
        return shown(await tried(db, caller, act, job_id))
    await act(db)
    if force:
        tell(Hint.CANCELS)
    return None


@routes.get("/jobs/{job_id}/revisions", responses=NOT_FOUND)
async def list_revisions(
    job_id: JobIdIn, caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[RevisionOut]:
    """Every definition it ever had, newest first: who made it so, why, and what that changed."""
    page = await revisions.page(db, caller.scope, job_id, cursor=cursor, limit=limit)
    return Page[RevisionOut](items=[revision_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.post("/jobs/{job_id}/revert", responses=REFUSALS)
async def revert_job(
    job_id: JobIdIn,
    asked: RevertIn,
    caller: Editor,
    db: Db,
    tell: Tell,
    response: Response,
    seen: Seen,
    force: Force = False,
    dry_run: DryRun = False,
) -> JobOut | DryRunOut:
    """Put an old revision in force again, as a new one."""

    async def act(db: Database) -> WrittenJob:
        scope = caller.scope.expecting(seen)
        return await revisions.revert(
            db, scope, job_id, asked.revision, note=asked.note, force=force, with_warnings=not dry_run
        )

    hints = (Hint.TIMERS,)
    return await done_or_tried(db, caller, job_id, act, response, dry_run=dry_run, tell=tell, hints=hints)


@dataclass(frozen=True, slots=True)
class _Write:
    """A request to change the fields of a job."""

    caller: Caller
    given: Mapping[str, Any]
    merge: Callable[[JobOut, Mapping[str, Any]], Written]
    if_match: str | None
    reach: EgressPolicy

    async def define(self, draft: JobDraft) -> Definition:
        """Build the new definition from the stored one and the request, inside the transaction that stores it."""
        caller, record = self.caller, draft.before
        assert record is not None
        seen = seen_revision(self.if_match, record.revision)
        if seen is None and type(self.given.get("revision")) is int:
            seen = self.given["revision"]
        await draft.require_revision(seen)  # before any complaint about fields that the author has not seen
        written = self.merge(job_out(record), self.given)
        ground = DefinitionContext(
            caller.at,
            caller.workspace.default_timezone,
            record.definition.owner_id,
            record.definition,
            written.keeps_schedule,
            await config_schema(draft, written.job.type),
            self.reach,
            caller.workspace.slug,
        )
        return definition_of(written.job, ground)
