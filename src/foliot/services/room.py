"""Room for one more job in a workspace, asked in the transaction that makes it."""

from __future__ import annotations

from foliot.domain.errors import Conflict
from foliot.domain.ids import WorkspaceId
from foliot.domain.quotas import Quotas, check_jobs
from foliot.storage import workspaces
from foliot.storage.tx import Database, Role, Tx

NEAR = (
    1_000  # jobs below the limit; fewer transactions than that make jobs of one workspace at the same moment
)
COUNTED = 1_000_000  # for people to read; counting further would cost more than it tells


async def check_room(tx: Tx, quotas: Quotas) -> None:
    """After the job is inserted and counts. Near the limit those who make jobs go one after the other, so that two cannot share
    the last place; far from it they do not wait for each other's commits.
    """
    most = 1 if quotas.jobs is None else quotas.jobs + 1
    found = await workspaces.room(tx, most)
    if found.is_archived:
        raise Conflict("This workspace is archived.", hint="Nothing can be made in it any more.")
    if quotas.jobs is None:
        return
    if found.jobs > quotas.jobs - NEAR:
        await workspaces.lock_room(tx)
        found = await workspaces.room(tx, most)
        if found.jobs > quotas.jobs:
            check_jobs(quotas, (await workspaces.room(tx, COUNTED)).jobs)


async def used(database: Database, workspace_id: WorkspaceId) -> int:
    """Jobs that are not archived."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return (await workspaces.room(tx, COUNTED)).jobs
