"""The revisions of a job: list them, and go back to one.

Why: docs/decisions/502-revisions.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from foliot.domain.access import Scope
from foliot.domain.definition import Definition
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.services.cursors import ListPage, cut_page, number, read_cursor
from foliot.services.jobs.job_edits import edit
from foliot.services.jobs.jobs import JobDraft
from foliot.services.jobs.visibility_steps import check_job_visible
from foliot.services.jobs.written_steps import WrittenJob
from foliot.storage.jobs import revisions
from foliot.storage.jobs.revisions import Revision
from foliot.storage.tx import Database, Role

__all__ = ["Revision"]


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """A revision and the definition before it. None: it is the first, or older than the records."""

    revision: Revision
    before: Definition | None


async def page(
    database: Database, scope: Scope, job_id: JobId, *, cursor: str | None = None, limit: int = 50
) -> ListPage[RevisionChange]:
    """List revisions, newest first."""
    [before] = read_cursor(cursor, number) or [None]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await check_job_visible(tx, job_id, scope)
        kept = await revisions.page(tx, job_id, before, limit + 1)
    older = [*(each.definition for each in kept[1:]), None]
    changes = [RevisionChange(each, was) for each, was in zip(kept, older, strict=True)]
    return cut_page(changes, limit, lambda last: [last.revision.revision])


async def revert(
    database: Database,
    scope: Scope,
    job_id: JobId,
    revision: int,
    *,
    note: str | None = None,
    force: bool = False,
    with_warnings: bool = False,
) -> WrittenJob:
    """Put an old definition in force again, as a new revision."""

    async def old_definition(draft: JobDraft) -> Definition:
        old = await revisions.get(draft.tx, job_id, revision)
        if old is None:
            raise Invalid(
                f"This job has no revision {revision}.",
                pointer="/revision",
                hint="Its list of revisions names them.",
            )
        assert draft.before is not None
        # The owner stays: an old revision must not move the job out of sight of those who have it now.
        definition = replace(old.definition, owner_id=draft.before.definition.owner_id)
        return (await draft.load_defaults()).applied_to(definition)

    said = f"Back to revision {revision}."
    said = f"{said} {note}" if note else said
    return await edit(
        database, scope, job_id, old_definition, note=said, force=force, with_warnings=with_warnings
    )
