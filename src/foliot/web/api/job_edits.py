"""/jobs/{id}: edit and delete a job; its revisions, and revert to one."""

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
from foliot.services.identity.authentication import Caller, require_permission
from foliot.services.jobs import job_edits, job_search, job_status, revisions
from foliot.services.jobs.jobs import JobDraft, WrittenJob
from foliot.web.api.jobs import ETAG
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, JobIdIn, Limit, TheEgressPolicy
from foliot.web.api.writes import Write, Writing, dry_run_response, preview_response
from foliot.web.auth import Editor, Viewer
from foliot.web.mapping.definitions import DefinitionContext, definition_from
from foliot.web.mapping.handler_config import config_schema
from foliot.web.mapping.job_patch import PatchedJob, enabled_in, merge_patch, replace_fields
from foliot.web.mapping.jobs import job_out, revision_out
from foliot.web.preconditions import ExpectedRevision, IfMatch, read_if_match
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import DryRunOut
from foliot.wire.jobs import JobOut, RevertIn, RevisionOut
from foliot.wire.shape import Page

routes = api_router("jobs")
REFUSALS = {200: ETAG, **NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY}
WHOLE = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobIn"}}}}}
RevisionNote = Annotated[
    str | None,
    Query(min_length=1, max_length=1_000, description="The reason, stored with the revision."),
]
Force = Annotated[bool, Query(description="Also if the job is managed by code, which may change it back.")]
WholeJob = Annotated[dict[str, Any], Body(description="The job as a GET answers with it.")]
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
    job: WholeJob,
    caller: Editor,
    reach: TheEgressPolicy,
    write: Writing,
    revision_note: RevisionNote = None,
    if_match: IfMatch = None,
    force: Force = False,
) -> JobOut | DryRunOut:
    """Replace the whole definition. Fields that are left out get their default; read-only fields may be sent unchanged.

    `enabled` that is left out keeps the status.
    """
    edit = _Edit(caller, job, replace_fields, if_match, reach)
    return await edit.write(write, job_id, revision_note, force=force)


@routes.patch("/jobs/{job_id}", responses=REFUSALS)
async def patch_job(
    job_id: JobIdIn,
    patch: Patch,
    caller: Editor,
    reach: TheEgressPolicy,
    write: Writing,
    revision_note: RevisionNote = None,
    if_match: IfMatch = None,
    force: Force = False,
) -> JobOut | DryRunOut:
    """Change some fields. A schedule in other words or of another kind replaces the old one and keeps its zone."""
    edit = _Edit(caller, patch, merge_patch, if_match, reach)
    return await edit.write(write, job_id, revision_note, force=force)


@routes.delete(
    "/jobs/{job_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(DryRunOut), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_job(
    job_id: JobIdIn,
    caller: Editor,
    db: Db,
    write: Writing,
    purge: Annotated[
        bool, Query(description="Remove it with its history, for good: administrators.")
    ] = False,
    detach: Annotated[bool, Query(description="Remove it from the jobs that depend on it.")] = False,
    force: Annotated[bool, Query(description="With purge: also while runs are under way.")] = False,
    if_match: IfMatch = None,
) -> Response | None:
    """Archive the job: it does not run again, and its history stays."""
    if purge:
        require_permission(caller, Permission.ADMIN)

    async def verb(db: Database) -> None:
        found = await job_search.job(db, caller.scope, job_id)
        scope = caller.scope.expecting(read_if_match(if_match, found.revision))
        if purge:
            await job_status.purge(db, scope, job_id, force=force, detach=detach)
        else:
            await job_status.archive(db, scope, job_id, detach=detach)

    if write.dry_run:
        return preview_response(await write.job_preview(job_id, verb))
    await verb(db)
    if force:
        write.announce(Hint.CANCELS)
    return None


@routes.get("/jobs/{job_id}/revisions", responses=NOT_FOUND)
async def list_revisions(
    job_id: JobIdIn, caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[RevisionOut]:
    """List the revisions of its definition, newest first: author, reason and changes."""
    page = await revisions.page(db, caller.scope, job_id, cursor=cursor, limit=limit)
    return Page[RevisionOut](items=[revision_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.post("/jobs/{job_id}/revert", responses=REFUSALS)
async def revert_job(
    job_id: JobIdIn,
    asked: RevertIn,
    caller: Editor,
    seen: ExpectedRevision,
    write: Writing,
    force: Force = False,
) -> JobOut | DryRunOut:
    """Restore an old revision, as a new one."""
    scope = caller.scope.expecting(seen)
    return await write.job(
        job_id,
        lambda db: revisions.revert(
            db, scope, job_id, asked.revision, note=asked.note, force=force, with_warnings=write.with_warnings
        ),
        Hint.TIMERS,
    )


@dataclass(frozen=True, slots=True)
class _Edit:
    """A request to change the fields of a job."""

    caller: Caller
    given: Mapping[str, Any]
    merge: Callable[[JobOut, Mapping[str, Any]], PatchedJob]
    if_match: str | None
    reach: EgressPolicy

    async def write(
        self, write: Write, job_id: JobId, note: str | None, *, force: bool
    ) -> JobOut | DryRunOut:
        async def verb(db: Database) -> WrittenJob:
            return await job_edits.edit(
                db,
                self.caller.scope,
                job_id,
                self.define,
                note=note,
                enabled=enabled_in(self.given),
                force=force,
                with_warnings=write.with_warnings,
            )

        return await write.job(job_id, verb, Hint.TIMERS, Hint.READY)

    async def define(self, draft: JobDraft) -> Definition:
        """Build the new definition from the stored one and the request, inside the transaction that stores it."""
        caller, record = self.caller, draft.before
        assert record is not None
        seen = read_if_match(self.if_match, record.revision)
        if seen is None and type(self.given.get("revision")) is int:
            seen = self.given["revision"]
        await draft.require_revision(seen)  # before any complaint about fields that the author has not seen
        written = self.merge(job_out(record), self.given)
        context = DefinitionContext(
            caller.at,
            caller.workspace.default_timezone,
            await draft.resolve_owner(caller.scope, written.job.owner, None),
            record.definition,
            written.keeps_schedule,
            await config_schema(draft, written.job.type),
            self.reach,
            caller.workspace.slug,
            await draft.load_defaults(),
        )
        return definition_from(written.job, context)
