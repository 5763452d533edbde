"""/workspaces: for keys of the installation."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from foliot.domain.ids import WorkspaceId
from foliot.services import Database
from foliot.services.dry_run import rehearsed
from foliot.services.hints import Hint
from foliot.services.identity import workspaces
from foliot.web.api.dry_run import DryRun, only_tried, shown
from foliot.web.api.params import DEFAULT_LIMIT, Changed, Cursor, Db, Limit, Tell
from foliot.web.auth import System
from foliot.web.mapping.identity import workspace_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import WorkspaceDryRunOut
from foliot.wire.instants import read_id
from foliot.wire.pages import Page
from foliot.wire.workspaces import WorkspaceIn, WorkspaceOut, WorkspacePatch

routes = api_router("workspaces")
NamedIn = Annotated[str, Path(alias="workspace", max_length=200, description="Its id or its slug.")]


@routes.post(
    "/workspaces", status_code=201, responses={**only_tried(WorkspaceDryRunOut), **CONFLICT, **WITH_BODY}
)
async def create_workspace(
    workspace: WorkspaceIn, caller: System, db: Db, response: Response, dry_run: DryRun = False
) -> WorkspaceOut | WorkspaceDryRunOut:
    """An empty workspace. Its first administrator is a member made with the header Foliot-Workspace."""
    name = (workspace.name or workspace.slug).strip()
    quotas = workspace.quotas.model_dump(exclude_none=True)

    async def act(db: Database) -> workspaces.Workspace:
        zone = workspace.default_timezone
        return await workspaces.create(db, caller.actor, workspace.slug, name, zone, quotas)

    if dry_run:
        response.status_code = 200
        return WorkspaceDryRunOut(workspace=workspace_out(await rehearsed(db, None, act, system=True)))
    made = await act(db)
    response.headers["Location"] = f"/api/v1/workspaces/{made.id}"
    return workspace_out(made)


@routes.get("/workspaces")
async def list_workspaces(
    caller: System,
    db: Db,
    archived: Annotated[bool, Query(description="Those that are archived instead of the others.")] = False,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[WorkspaceOut]:
    """In the order of their slugs."""
    page = await workspaces.listed(db, is_archived=archived, cursor=cursor, limit=limit)
    return Page[WorkspaceOut](
        items=[workspace_out(each) for each in page.items], next_cursor=page.next_cursor
    )


@routes.get("/workspaces/{workspace}", responses=NOT_FOUND)
async def get_workspace(workspace: NamedIn, caller: System, db: Db) -> WorkspaceOut:
    return workspace_out(await _named(db, workspace))


@routes.patch("/workspaces/{workspace}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_workspace(
    workspace: NamedIn,
    changes: WorkspacePatch,
    caller: System,
    db: Db,
    changed: Changed,
    dry_run: DryRun = False,
) -> WorkspaceOut | WorkspaceDryRunOut:
    quotas = None if changes.quotas is None else changes.quotas.model_dump(exclude_unset=True)
    wanted = workspaces.Changes(changes.name and changes.name.strip(), changes.default_timezone, quotas)
    found = await _named(db, workspace)

    async def act(db: Database) -> workspaces.Workspace:
        return await workspaces.change(db, caller.actor, found.id, wanted)

    if dry_run:
        return WorkspaceDryRunOut(workspace=workspace_out(await rehearsed(db, None, act, system=True)))
    after = await act(db)
    changed()
    return workspace_out(after)


@routes.delete(
    "/workspaces/{workspace}",
    status_code=204,
    response_model=None,
    responses={**only_tried(WorkspaceDryRunOut), **NOT_FOUND, **CONFLICT},
)
async def archive_workspace(
    workspace: NamedIn, caller: System, db: Db, changed: Changed, tell: Tell, dry_run: DryRun = False
) -> Response | None:
    """Put it away: its keys end, its jobs are archived, its runs are cancelled, and workers' results for them are refused."""
    found = await _named(db, workspace)
    if dry_run:
        would = await workspaces.would_archive(db, caller.actor, found.id)
        return shown(
            WorkspaceDryRunOut(
                workspace=workspace_out(would.workspace), jobs=would.jobs, keys=would.keys, runs=would.runs
            )
        )
    try:
        await workspaces.archive(db, caller.actor, found.id)
    finally:
        changed()  # the door is shut by the first of its commits
        tell(Hint.CANCELS)
    return None


async def _named(db: Database, text: str) -> workspaces.Workspace:
    found = read_id(text)
    return await workspaces.get(db, text if found is None else WorkspaceId(found))
