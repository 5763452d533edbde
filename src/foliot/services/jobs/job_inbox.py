"""Create the jobs that programs have inserted with SQL (`foliot.create_job`), and record the result of each."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from foliot.domain.errors import FoliotError, Unavailable
from foliot.domain.ids import JobId, WorkspaceId
from foliot.services.dry_run import apply_together
from foliot.services.identity import workspaces
from foliot.services.identity.workspaces import Workspace
from foliot.storage.jobs import job_inbox
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

BATCH = 100
KEPT = timedelta(days=7)  # how long a result can be read
# Creates a job in a workspace for a login, as the API would.
CreateJob = Callable[[Database, Workspace, str, Mapping[str, Any]], Awaitable[JobId]]


async def process_inbox(database: Database, create: CreateJob) -> int:
    """Create the jobs of the oldest entries; return how many entries there were. An entry and its job are committed together."""
    async with database.tx(Role.ENGINE) as tx:
        entries = await job_inbox.list_unprocessed(tx, BATCH)
        await job_inbox.prune(tx, tx.now - KEPT)
    for workspace_id, entry_id in entries:
        try:
            await _create(database, workspace_id, entry_id, create)
        except Unavailable:
            raise
        except Exception as error:
            expected = isinstance(error, FoliotError)
            message = f"{error.message} {error.hint or ''}".strip() if isinstance(error, FoliotError) else ""
            log.log(
                logging.INFO if expected else logging.ERROR,
                "job_inbox.refused",
                extra={"workspace": str(workspace_id), "entry": str(entry_id), "reason": message},
                exc_info=not expected,
            )
            async with database.tx(Role.APP, workspace_id) as tx:
                await job_inbox.store_result(
                    tx, entry_id, error=message or "Foliot could not create it; the server's log says why."
                )
    return len(entries)


async def _create(database: Database, workspace_id: WorkspaceId, entry_id: UUID, create: CreateJob) -> None:
    workspace = await workspaces.get(database, workspace_id)

    async def create_and_record(stage: Database) -> None:
        async with stage.tx(Role.APP, workspace_id) as tx:
            entry = await job_inbox.lock(tx, entry_id)
        if entry is None:
            return
        job_id = await create(stage, workspace, entry.created_by, entry.job)
        async with stage.tx(Role.APP, workspace_id) as tx:
            await job_inbox.store_result(tx, entry_id, job_id=job_id)

    await apply_together(database, workspace_id, create_and_record)
