"""Defaults for retry, timeout and retention: read and change them, and give the new values to the jobs that inherit them.

Why: docs/decisions/609-defaults-are-resolved-when-they-change.md
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.defaults import DefaultValues, JobDefaults
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.schedule import load_zone
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.workspaces import workspace_not_found
from foliot.storage.codec import encode
from foliot.storage.identity import defaults, workspaces
from foliot.storage.jobs import jobs
from foliot.storage.jobs.jobs import RevisionAuthor
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

BATCH = 200  # jobs in one transaction
_FIRST = JobId(UUID(int=0))
_NOTE = "A default of the {} changed."


@dataclass(frozen=True, slots=True)
class WorkspaceDefaults:
    timezone: str
    values: JobDefaults


@dataclass(frozen=True, slots=True)
class DefaultChanges:
    """The fields to change, by name; None gives a field back to the installation."""

    values: Mapping[str, Any]
    timezone: str | None = None


async def get(database: Database, workspace_id: WorkspaceId) -> WorkspaceDefaults:
    async with database.tx(Role.APP, workspace_id) as tx:
        return await _load(tx, workspace_id)


async def change(database: Database, scope: Scope, wanted: DefaultChanges) -> WorkspaceDefaults:
    """Change the defaults of the workspace, then the jobs that inherit them, in batches.

    The zone counts for schedules that are written from now on: existing jobs keep their planned times.
    """
    if wanted.timezone is not None:
        load_zone(wanted.timezone)
    workspace_id = scope.workspace_id
    async with database.tx(Role.APP, workspace_id) as tx:
        await defaults.lock_workspace(tx, workspace_id)
        before = await _load(tx, workspace_id)
        after = WorkspaceDefaults(
            wanted.timezone or before.timezone,
            replace(before.values, workspace=replace(before.values.workspace, **wanted.values)),
        )
        if after == before:
            return before
        if after.timezone != before.timezone:
            await workspaces.set_timezone(tx, workspace_id, after.timezone)
        if after.values != before.values:
            await defaults.store_workspace(tx, workspace_id, after.values.workspace)
        await append_audit(
            tx,
            "defaults.changed",
            ("workspace", workspace_id),
            scope.actor,
            before=_audit_fields(before),
            after=_audit_fields(after),
        )
    if after.values != before.values:
        await _apply(database, replace(scope, actor=replace(scope.actor, claim=None)))
    return after


async def set_of_installation(database: Database, values: DefaultValues) -> bool:
    """Store the defaults of this node's settings, and return whether they are new. The janitor gives them to the jobs."""
    async with database.tx(Role.APP, system=True) as tx:
        if await defaults.load_installation(tx) == values:
            return False
        await defaults.lock_installation(tx)
        await defaults.store_installation(tx, values)
    log.info("installation.defaults_changed", extra={"defaults": encode(values)})
    return True


async def apply_unapplied(database: Database) -> bool:
    """Give the newest defaults to the jobs of one workspace. Return whether there may be more workspaces."""
    async with database.tx(Role.ENGINE) as tx:
        found = await defaults.next_unapplied(tx)
    if found is not None:
        await _apply(database, Scope(found))
    return found is not None


async def _apply(database: Database, scope: Scope) -> None:
    """Rewrite the jobs whose inherited values are old. Two nodes may do this at once: the second finds nothing to change."""
    after: JobId | None = _FIRST
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        revision = (await defaults.load(tx, scope.workspace_id)).revision
    while after is not None:
        async with database.tx(Role.APP, scope.workspace_id) as tx:
            after = await _apply_batch(tx, scope, after)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await defaults.mark_applied(tx, scope.workspace_id, revision)


async def _apply_batch(tx: Tx, scope: Scope, after: JobId) -> JobId | None:
    """Return the last job of the batch; None for the last batch."""
    values = (await defaults.load(tx, scope.workspace_id)).values
    found = await defaults.list_inheriting(tx, after, BATCH)
    stale = [each.id for each in found if values.applied_to(each.definition) != each.definition]
    await timers.lock(tx, stale)
    for job_id in stale:
        current = await jobs.load_definition(tx, job_id)  # again, under the lock
        if current is None or (changed := values.applied_to(current)) == current:
            continue
        author = RevisionAuthor(
            scope.actor.name, _NOTE.format(_changed_level(current.inherited, changed.inherited))
        )
        await jobs.redefine(tx, job_id, changed, author)
    return found[-1].id if len(found) == BATCH else None


def _changed_level(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the level whose default changed: the workspace, unless every value comes from the installation, then and now."""
    return "workspace" if "workspace" in {*before.values(), *after.values()} else "installation"


async def _load(tx: Tx, workspace_id: WorkspaceId) -> WorkspaceDefaults:
    workspace = await workspaces.get(tx, workspace_id)
    if workspace is None:
        raise workspace_not_found()
    return WorkspaceDefaults(workspace.default_timezone, (await defaults.load(tx, workspace_id)).values)


def _audit_fields(shown: WorkspaceDefaults) -> Mapping[str, Any]:
    own: dict[str, Any] = encode(shown.values.workspace)
    return {**own, "default_timezone": shown.timezone}
