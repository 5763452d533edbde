"""What a job was: its revisions, and going back to one of them."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.domain.access import Scope
from foliot.domain.definition import Definition
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, PrincipalId
from foliot.services.cursors import ListPage, cut_page, number, read_cursor
from foliot.services.jobs.job_edits import Edited, edit
from foliot.services.jobs.lock_steps import not_found
from foliot.storage.jobs import jobs, revisions
from foliot.storage.jobs.revisions import Revision
from foliot.storage.tx import Database, Role, Tx

__all__ = ["Change", "Revision", "page", "revert"]


@dataclass(frozen=True, slots=True)
class Change:
    """A revision, and what it was made from; None where that is not known: for the first, and before revisions were kept."""

    revision: Revision
    before: Definition | None


async def page(
    database: Database,
    scope: Scope,
    job_id: JobId,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[Change]:
    """Newest first."""
    [before] = read_cursor(cursor, number) or [None]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await jobs.get(tx, job_id)
        if found is None or scope.visible_owner not in (None, found.definition.owner_id):
            raise not_found("job")
        kept = await revisions.page(tx, job_id, before, limit + 1)
    older = [*(each.definition for each in kept[1:]), None]
    changes = [Change(each, was) for each, was in zip(kept, older, strict=True)]
    return cut_page(changes, limit, lambda last: [last.revision.revision])


async def revert(
    database: Database,
    scope: Scope,
    job_id: JobId,
    revision: int,
    *,
    note: str | None = None,
    force: bool = False,
) -> Edited:
    """An edit that puts an old definition in force again: history is added to and never rewritten."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await jobs.get(tx, job_id)
        if found is None or scope.visible_owner not in (None, found.definition.owner_id):
            raise not_found("job")
        old = await revisions.get(tx, job_id, revision)
        if old is not None and scope.visible_owner is not None:
            await _must_own_upstreams(tx, found.definition, old.definition, scope.visible_owner)
    if old is None:
        raise Invalid(
            f"This job has no revision {revision}.",
            pointer="/revision",
            hint="Its list of revisions names them.",
        )
    said = f"Back to revision {revision}."
    return await edit(
        database, scope, job_id, old.definition, note=f"{said} {note}" if note else said, force=force
    )


async def _must_own_upstreams(tx: Tx, now: Definition, old: Definition, owner: PrincipalId) -> None:
    """What an agent may not write, it does not get back by an old revision: edges to jobs of others."""
    given = {each.upstream for each in now.depends_on}
    for edge in old.depends_on:
        upstream = None if edge.upstream in given else await jobs.get(tx, edge.upstream)
        if edge.upstream not in given and (upstream is None or upstream.definition.owner_id != owner):
            raise Invalid(
                "There is no such job.", pointer="/depends_on", hint="Others own it, or it is gone."
            )
