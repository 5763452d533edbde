"""/workspaces: for keys of the installation."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from foliot.domain.ids import WorkspaceId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity import workspaces
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit
from foliot.web.api.writes import Writing, dry_run_response, preview_response
from foliot.web.auth import System
from foliot.web.mapping.identity import archival_preview, workspace_out, workspace_preview
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import WorkspaceDryRunOut
from foliot.wire.identity import WorkspaceIn, WorkspaceOut, WorkspacePatch
from foliot.wire.instants import read_id
from foliot.wire.shape import Page

routes = api_router("workspaces")
NamedIn = Annotated[str, Path(alias="workspace", max_length=200, description="Its id or its slug.")]


@routes.post(
    "/workspaces",
    status_code=201,
    responses={**dry_run_response(WorkspaceDryRunOut), **CONFLICT, **WITH_BODY},
)
async def create_workspace(
    workspace: WorkspaceIn, caller: System, write: Writing
) -> WorkspaceOut | WorkspaceDryRunOut:
    """Create an empty workspace. Add its first administrator as a member, with the header Foliot-Workspace."""
    name = (workspace.name or workspace.slug).strip()
    zone, quotas = workspace.default_timezone, workspace.quotas.model_dump(exclude_none=True)

    def answer(made: workspaces.Workspace) -> WorkspaceOut:
        write.set_location(f"workspaces/{made.id}")
        return workspace_out(made)

    return await write.as_system().apply_or_preview(
        lambda db: workspaces.create(db, caller.actor, workspace.slug, name, zone, quotas),
        answer,
        workspace_preview,
    )


@routes.get("/workspaces")
async def list_workspaces(
    caller: System,
    db: Db,
    archived: Annotated[bool, Query(description="List archived workspaces instead.")] = False,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[WorkspaceOut]:
    """List workspaces by slug."""
    page = await workspaces.listed(db, is_archived=archived, cursor=cursor, limit=limit)
    return Page[WorkspaceOut](
        items=[workspace_out(each) for each in page.items], next_cursor=page.next_cursor
    )


@routes.get("/workspaces/{workspace}", responses=NOT_FOUND)
async def get_workspace(workspace: NamedIn, caller: System, db: Db) -> WorkspaceOut:
    """Get a workspace."""
    return workspace_out(await _named(db, workspace))


@routes.patch("/workspaces/{workspace}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_workspace(
    workspace: NamedIn, changes: WorkspacePatch, caller: System, db: Db, write: Writing
) -> WorkspaceOut | WorkspaceDryRunOut:
    """Change name, default zone or quotas; a quota of null is the installation's again."""
    quotas = None if changes.quotas is None else changes.quotas.model_dump(exclude_unset=True)
    wanted = workspaces.WorkspaceChanges(
        changes.name and changes.name.strip(), changes.default_timezone, quotas
    )
    found = await _named(db, workspace)
    return await write.as_system().apply_or_preview(
        lambda db: workspaces.change(db, caller.actor, found.id, wanted),
        workspace_out,
        workspace_preview,
        Hint.KEYS,
    )


@routes.delete(
    "/workspaces/{workspace}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(WorkspaceDryRunOut), **NOT_FOUND, **CONFLICT},
)
async def archive_workspace(workspace: NamedIn, caller: System, db: Db, write: Writing) -> Response | None:
    """Archive the workspace: its keys end, its jobs are archived, its runs are cancelled, and results of workers for them are refused."""
    found = await _named(db, workspace)
    if write.dry_run:
        # It counts rows of the workspace after the rollback: a dry run stays in one workspace.
        return preview_response(archival_preview(await workspaces.would_archive(db, caller.actor, found.id)))
    try:
        await workspaces.archive(db, caller.actor, found.id)
    finally:
        write.announce(Hint.KEYS, Hint.CANCELS)  # the first of its commits ends the keys
    return None


async def _named(db: Database, text: str) -> workspaces.Workspace:
    found = read_id(text)
    return await workspaces.get(db, text if found is None else WorkspaceId(found))
