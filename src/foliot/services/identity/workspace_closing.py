"""Emptying a workspace that is put away: its jobs are archived and its runs end, those that workers have included."""

from __future__ import annotations

from dataclasses import replace

from foliot.domain.access import Actor, Scope
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobEvent, JobStatus, advance
from foliot.domain.outcomes import Cancelled
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.identity import workspaces
from foliot.storage.jobs import jobs
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.queue import leases, waiting
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

BATCH = 100  # jobs in one transaction
MOST_LOOKS = 3
JANITOR = Actor("engine")


async def empty(database: Database, scope: Scope) -> None:
    """Some jobs at a time. Nothing new comes after them: whoever makes a job finds the workspace archived."""
    while await _empty_some(database, scope):
        pass


async def finish(database: Database) -> bool:
    """Go on where somebody stopped; True where there may be more to do."""
    async with database.tx(Role.ENGINE) as tx:
        found = await workspaces.find_unfinished(tx)
    return found is not None and await _empty_some(database, Scope(found, JANITOR)) > 0


async def _empty_some(database: Database, scope: Scope) -> int:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        wanted = await workspaces.list_open_jobs(tx, BATCH)
        if wanted:
            await _close(tx, wanted, scope.actor)
        return len(wanted)


async def _close(tx: Tx, wanted: list[JobId], by: Actor) -> None:
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
    # Archived first: the ends of their runs then neither promote nor complete anything, and nobody is left to wake.
    writer = SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))
    for _ in range(MOST_LOOKS):  # between two looks a claim may put one in line at a cap, or a cap let one go
        found = [run_id for row in rows.values() for run_id in await waiting.unclaimed_of_job(tx, row)]
        if not found:
            break
        await writer.end_unclaimed(found, Cancelled())
    # After those: what a worker claims meanwhile is no longer standing, and is found among the leases.
    for lease in (await leases.lock(tx, await workspaces.list_leases(tx, list(rows)))).values():
        writer.end_leased(lease, Cancelled(), None)
    await writer.write()
    await writer.give_back_permits()
