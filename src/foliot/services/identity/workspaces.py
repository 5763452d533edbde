"""Workspaces, for operators of the installation: create, change and archive them.

Why: docs/decisions/211-purge-and-archive-in-pieces.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import JobEvent, JobStatus, advance
from foliot.domain.outcomes import Cancelled
from foliot.domain.schedule import load_zone
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.installation import DEFAULT_WORKSPACE
from foliot.services.identity.quota_steps import COUNTED
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.content import secrets
from foliot.storage.dry_run import open_dry_run
from foliot.storage.identity import defaults, keys, workspaces
from foliot.storage.identity.workspaces import Workspace
from foliot.storage.jobs import jobs
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.queue import leases, unclaimed_runs
from foliot.storage.runs import statistics
from foliot.storage.timers import fire_quotas, timers
from foliot.storage.tx import Database, Role, Tx

ARCHIVED_AT_ONCE = 100  # jobs in one transaction
MOST_LOOKS = 3
_SLUG = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)  # no other text can name one
__all__ = ["Workspace"]


@dataclass(frozen=True, slots=True)
class WorkspaceChanges:
    """The fields to change. A quota of None returns to the installation's default."""

    name: str | None = None
    default_timezone: str | None = None
    quotas: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Archiving:
    """The counts that archiving a workspace ends: jobs, keys and open runs."""

    workspace: Workspace
    jobs: int
    keys: int
    runs: int


async def create(
    database: Database,
    by: Actor,
    slug: str,
    name: str,
    default_timezone: str | None,
    quotas: Mapping[str, Any],
) -> Workspace:
    """Create a workspace; without a zone it gets that of the installation."""
    if default_timezone is not None:
        load_zone(default_timezone)
    async with database.tx(Role.APP, system=True) as tx:
        if default_timezone is None:
            default_timezone = (await defaults.load_installation(tx)).timezone or "UTC"
        settings = {"quotas": dict(quotas)} if quotas else {}
        made = Workspace(WorkspaceId(tx.new_id()), slug, name, default_timezone, settings, tx.now, None)
        if not await workspaces.insert(tx, made):
            raise Conflict(
                f'There is a workspace "{slug}" already, or there was one.',
                pointer="/slug",
                hint="Choose another slug; those of archived workspaces stay taken.",
            )
        await fire_quotas.put(tx, made.id, made.id, made.quotas.get("fires_per_day"))
        await append_audit(tx, "workspace.created", ("workspace", made.id), by, after=_audit_fields(made))
        return made


async def listed(
    database: Database, *, is_archived: bool | None = False, cursor: str | None = None, limit: int = 50
) -> ListPage[Workspace]:
    [after] = read_cursor(cursor, _slug) or [None]
    async with database.tx(Role.APP, system=True) as tx:
        found = await workspaces.page(tx, after, limit + 1, is_archived=is_archived)
    return cut_page(found, limit, lambda last: [last.slug])


async def get(database: Database, named: WorkspaceId | str) -> Workspace:
    """Find a workspace by id or slug."""
    async with database.tx(Role.APP, system=True) as tx:
        if isinstance(named, str):
            found = await workspaces.find_by_slug(tx, named) if _SLUG.fullmatch(named) else None
        else:
            found = await workspaces.get(tx, named)
    if found is None:
        raise workspace_not_found()
    return found


async def count_jobs(database: Database, workspace_id: WorkspaceId) -> int:
    """Count the jobs that are not archived."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return (await workspaces.load_usage(tx, COUNTED)).jobs


async def change(
    database: Database, by: Actor, workspace_id: WorkspaceId, wanted: WorkspaceChanges
) -> Workspace:
    if wanted.default_timezone is not None:
        load_zone(wanted.default_timezone)
    async with database.tx(Role.APP, system=True) as tx:
        before = await workspaces.lock(tx, workspace_id)
        if before is None:
            raise workspace_not_found()
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
            await fire_quotas.put(tx, workspace_id, workspace_id, after.quotas.get("fires_per_day"))
            thing = ("workspace", workspace_id)
            await append_audit(
                tx, "workspace.changed", thing, by, before=_audit_fields(before), after=_audit_fields(after)
            )
        return after


async def archive(database: Database, by: Actor, workspace_id: WorkspaceId) -> None:
    """Archive the workspace: its keys stop working, nothing fires, and results of its runs are refused.

    The first commit closes the workspace. Its jobs are then archived in batches, so that no transaction grows with the
    workspace; after a crash the janitor continues.
    """
    await _close(database, by, workspace_id)
    async with database.tx(Role.APP, workspace_id) as tx:
        await keys.revoke_of_workspace(tx, workspace_id)
    await archive_jobs(database, Scope(workspace_id, by))


async def would_archive(database: Database, by: Actor, workspace_id: WorkspaceId) -> Archiving:
    """Count what archiving the workspace would end, and change nothing."""
    async with open_dry_run(database, Role.APP, None, system=True) as stage:
        found = await _close(stage, by, workspace_id)
    async with database.tx(Role.APP, workspace_id) as tx:
        now = await statistics.count_open(tx, tx.now, None)
        jobs = (await workspaces.load_usage(tx, COUNTED)).jobs
        return Archiving(found, jobs, await keys.count_valid(tx), now.ready + now.waiting + now.running)


async def _close(database: Database, by: Actor, workspace_id: WorkspaceId) -> Workspace:
    async with database.tx(Role.APP, system=True) as tx:
        found = await workspaces.lock(tx, workspace_id)
        if found is None:
            raise workspace_not_found()
        if found.slug == DEFAULT_WORKSPACE:
            raise Conflict(
                "The workspace default stays: keys of the installation work in it when they name none.",
                hint="Archive its jobs instead.",
            )
        if found.archived_at is None:
            await workspaces.archive(tx, workspace_id)
            await secrets.delete_all(tx, workspace_id)
            await append_audit(
                tx, "workspace.archived", ("workspace", workspace_id), by, before=_audit_fields(found)
            )
            found = replace(found, archived_at=tx.now)
        return found


def workspace_not_found() -> NotFound:
    return NotFound("There is no such workspace.", hint="List the workspaces to see their names.")


def _slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise ValueError(text)
    return text


def _audit_fields(workspace: Workspace) -> Mapping[str, Any]:
    return {
        "slug": workspace.slug,
        "name": workspace.name,
        "default_timezone": workspace.default_timezone,
        "quotas": dict(workspace.quotas),
    }


async def archive_jobs(database: Database, scope: Scope) -> None:
    """Archive the jobs in batches. No job is added meanwhile: creating one is refused in an archived workspace."""
    while await _archive_some_jobs(database, scope):
        pass


async def finish_archiving(database: Database) -> bool:
    """Continue an archiving that a crash interrupted. Return whether there may be more to do."""
    async with database.tx(Role.ENGINE) as tx:
        found = await workspaces.find_unfinished(tx)
    return found is not None and await _archive_some_jobs(database, Scope(found)) > 0


async def _archive_some_jobs(database: Database, scope: Scope) -> int:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        wanted = await workspaces.list_open_jobs(tx, ARCHIVED_AT_ONCE)
        if wanted:
            await _archive_jobs_in(tx, wanted, scope.actor)
        return len(wanted)


async def _archive_jobs_in(tx: Tx, wanted: list[JobId], by: Actor) -> None:
    locked = await timers.lock(tx, wanted)
    rows = {
        job_id: row._replace(
            status=advance(row.status, JobEvent.ARCHIVE),
            timer=replace(row.timer, due_at=None, next_at=None, ending=None),
        )
        for job_id, row in locked.items()
        if row.status is not JobStatus.ARCHIVED
    }
    await workspaces.stop_timers(tx, list(rows))
    await jobs.change_status(tx, [StatusChange(job_id, row.status) for job_id, row in rows.items()], by.name)
    # Archive before ending runs: then an end promotes no waiting run, completes no job and wakes no dependent.
    writer = SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))
    for _ in range(MOST_LOOKS):  # a claim or a limit may move a run between two looks
        found = [run_id for row in rows.values() for run_id in await unclaimed_runs.unclaimed_of_job(tx, row)]
        if not found:
            break
        await writer.end_unclaimed(found, Cancelled())
    # Leases come after unclaimed runs: a run that a worker claims meanwhile is found here.
    for lease in (await leases.lock(tx, await workspaces.list_leases(tx, list(rows)))).values():
        writer.end_leased(lease, Cancelled(), None)
    await writer.write()
    await writer.give_back_permits()
