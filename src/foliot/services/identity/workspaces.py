"""Workspaces, for those who run the installation: make one, change it, put it away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.ids import WorkspaceId
from foliot.domain.schedule import load_zone
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.installation import DEFAULT_WORKSPACE
from foliot.services.identity.quota_steps import COUNTED
from foliot.services.identity.workspace_closing import empty
from foliot.services.jobs.lock_steps import append_audit
from foliot.storage.content import secrets
from foliot.storage.dry_run import open_dry_run
from foliot.storage.identity import keys, workspaces
from foliot.storage.identity.workspaces import Workspace
from foliot.storage.runs import statistics
from foliot.storage.tx import Database, Role

_SLUG = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)  # no other text can name one
__all__ = [
    "Archiving",
    "Changes",
    "Workspace",
    "archive",
    "change",
    "count_jobs",
    "create",
    "get",
    "listed",
    "would_archive",
]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be different. A quota of None goes back to the installation's."""

    name: str | None = None
    default_timezone: str | None = None
    quotas: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Archiving:
    """What goes with a workspace that is put away: jobs, keys, and runs that have not ended."""

    workspace: Workspace
    jobs: int
    keys: int
    runs: int


async def create(
    database: Database, by: Actor, slug: str, name: str, default_timezone: str, quotas: Mapping[str, Any]
) -> Workspace:
    load_zone(default_timezone)
    async with database.tx(Role.APP, system=True) as tx:
        settings = {"quotas": dict(quotas)} if quotas else {}
        made = Workspace(WorkspaceId(tx.new_id()), slug, name, default_timezone, settings, tx.now, None)
        if not await workspaces.insert(tx, made):
            raise Conflict(
                f'There is a workspace "{slug}" already, or there was one.',
                pointer="/slug",
                hint="Choose another slug; those of archived workspaces stay taken.",
            )
        await append_audit(tx, "workspace.created", ("workspace", made.id), by, after=_told(made))
        return made


async def listed(
    database: Database, *, is_archived: bool | None = False, cursor: str | None = None, limit: int = 50
) -> ListPage[Workspace]:
    [after] = read_cursor(cursor, _slug) or [None]
    async with database.tx(Role.APP, system=True) as tx:
        found = await workspaces.page(tx, after, limit + 1, is_archived=is_archived)
    return cut_page(found, limit, lambda last: [last.slug])


async def get(database: Database, named: WorkspaceId | str) -> Workspace:
    """By its id or its slug."""
    async with database.tx(Role.APP, system=True) as tx:
        if isinstance(named, str):
            found = await workspaces.by_slug(tx, named) if _SLUG.fullmatch(named) else None
        else:
            found = await workspaces.by_id(tx, named)
    if found is None:
        raise no_such_workspace()
    return found


async def count_jobs(database: Database, workspace_id: WorkspaceId) -> int:
    """Count the jobs that are not archived."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return (await workspaces.load_usage(tx, COUNTED)).jobs


async def change(database: Database, by: Actor, workspace_id: WorkspaceId, wanted: Changes) -> Workspace:
    if wanted.default_timezone is not None:
        load_zone(wanted.default_timezone)
    async with database.tx(Role.APP, system=True) as tx:
        before = await workspaces.lock(tx, workspace_id)
        if before is None:
            raise no_such_workspace()
        if before.archived_at is not None:
            raise Conflict("This workspace is archived.", hint="Make a new one.")
        settings = dict(before.settings)
        if wanted.quotas is not None:
            merged = {**before.quotas, **wanted.quotas}
            settings["quotas"] = {name: value for name, value in merged.items() if value is not None}
        after = replace(
            before,
            name=before.name if wanted.name is None else wanted.name,
            default_timezone=wanted.default_timezone or before.default_timezone,
            settings=settings,
        )
        if after != before:
            await workspaces.change(tx, workspace_id, after.name, after.default_timezone, after.settings)
            thing = ("workspace", workspace_id)
            await append_audit(tx, "workspace.changed", thing, by, before=_told(before), after=_told(after))
        return after


async def archive(database: Database, by: Actor, workspace_id: WorkspaceId) -> None:
    """No key of it works from here on, nothing of it fires, and no result is taken any more.

    The first commit shuts the door; its jobs then go some at a time, so that no transaction grows with the workspace. Should
    this process die in between, the janitor goes on where it stopped.
    """
    await _shut(database, by, workspace_id)
    async with database.tx(Role.APP, workspace_id) as tx:
        await keys.revoke_of_workspace(tx, workspace_id)
    await empty(database, Scope(workspace_id, by))


async def would_archive(database: Database, by: Actor, workspace_id: WorkspaceId) -> Archiving:
    """What archiving it would end; nothing is kept."""
    async with open_dry_run(database, Role.APP, None, system=True) as stage:
        found = await _shut(stage, by, workspace_id)
    async with database.tx(Role.APP, workspace_id) as tx:
        now = await statistics.count_open(tx, tx.now, None)
        jobs = (await workspaces.load_usage(tx, COUNTED)).jobs
        return Archiving(found, jobs, await keys.count_valid(tx), now.ready + now.waiting + now.running)


async def _shut(database: Database, by: Actor, workspace_id: WorkspaceId) -> Workspace:
    async with database.tx(Role.APP, system=True) as tx:
        found = await workspaces.lock(tx, workspace_id)
        if found is None:
            raise no_such_workspace()
        if found.slug == DEFAULT_WORKSPACE:
            raise Conflict(
                "The workspace default stays: keys of the installation work in it when they name none.",
                hint="Archive its jobs instead.",
            )
        if found.archived_at is None:
            await workspaces.archive(tx, workspace_id)
            await secrets.delete_all(tx, workspace_id)
            await append_audit(tx, "workspace.archived", ("workspace", workspace_id), by, before=_told(found))
            found = replace(found, archived_at=tx.now)
        return found


def no_such_workspace() -> NotFound:
    return NotFound("There is no such workspace.", hint="GET /workspaces lists them.")


def _slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise ValueError(text)
    return text


def _told(workspace: Workspace) -> Mapping[str, Any]:
    return {
        "slug": workspace.slug,
        "name": workspace.name,
        "default_timezone": workspace.default_timezone,
        "quotas": dict(workspace.quotas),
    }
