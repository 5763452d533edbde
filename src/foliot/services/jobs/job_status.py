"""Pause, resume, disable, archive and purge jobs, each in its own transaction."""

from __future__ import annotations

import logging
from datetime import datetime

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import DatabaseUnavailable, NotFound
from foliot.domain.ids import JobId, WorkspaceId
from foliot.services.identity.quota_steps import check_restored_quota
from foliot.services.jobs.job_status_steps import (
    PURGED_AT_ONCE,
    StatusMove,
    archive_in,
    disable_in,
    pause_in,
    purge_in,
    restore_in,
    resume_in,
    resume_locked,
)
from foliot.services.jobs.lock_steps import lock_job
from foliot.services.settlement.settle_steps import ENGINE_ACTOR
from foliot.storage.jobs import jobs
from foliot.storage.tx import Database, Role

__all__ = ["StatusMove"]

log = logging.getLogger(__name__)

RESUMED_AT_ONCE = 100  # jobs in one pass of the sweeper


async def pause(
    database: Database,
    scope: Scope,
    job_id: JobId,
    *,
    reason: str | None = None,
    until: datetime | None = None,
    drop_queued: bool = False,
) -> StatusMove:
    """Stop scheduled runs until a resume, or until `until`. Runs under way continue; others wait, or end with `drop_queued`."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await pause_in(tx, job_id, scope, reason=reason, until=until, drop_queued=drop_queued)


async def disable(
    database: Database, scope: Scope, job_id: JobId, *, reason: str | None = None
) -> StatusMove:
    """Stop scheduled runs until a resume."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await disable_in(tx, job_id, scope, reason=reason)


async def resume(database: Database, scope: Scope, job_id: JobId, *, catch_up: bool = False) -> StatusMove:
    """Resume. The times that passed become one record; only `catch_up` runs any of them."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await resume_in(tx, job_id, scope, catch_up=catch_up)


async def archive(database: Database, scope: Scope, job_id: JobId, *, detach: bool = False) -> StatusMove:
    """Archive the job with its history. Runs under way continue; others are cancelled."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await archive_in(tx, job_id, scope, detach=detach)


async def restore(database: Database, scope: Scope, job_id: JobId) -> StatusMove:
    """Bring a job back from the archive, with its history. It is disabled until it is resumed."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        move = await restore_in(tx, job_id, scope)
        await check_restored_quota(database, tx, scope.actor)
        return move


async def purge(
    database: Database, scope: Scope, job_id: JobId, *, force: bool = False, detach: bool = False
) -> int:
    """Delete the job with its history. Return how many run records went at once; the janitor deletes the rest.

    Only `force` takes runs from workers.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await purge_in(tx, job_id, scope, force=force, detach=detach)


async def resume_due(database: Database, limit: int = RESUMED_AT_ONCE) -> int:
    """Resume jobs whose pause is over. Return how many were found. A job that cannot resume does not stop the others."""
    async with database.tx(Role.ENGINE) as tx:
        found = await jobs.list_due_to_resume(tx, limit)
    for workspace_id, job_id in found:
        try:
            await _resume_if_due(database, workspace_id, job_id)
        except NotFound:
            continue  # purged meanwhile
        except DatabaseUnavailable:
            raise
        except Exception:  # it stays paused for an operator, and is not found again
            log.exception("job.not_resumed", extra={"workspace": str(workspace_id), "job": str(job_id)})
            async with database.tx(Role.APP, workspace_id) as tx:
                await jobs.set_paused_until(tx, None, job_id)
    return len(found)


async def finish_purges(database: Database, most: int = PURGED_AT_ONCE) -> bool:
    """Delete one batch of a long history. Return whether there may be more.

    These jobs have no timer any more, so firing never waits for this.
    """
    async with database.tx(Role.ENGINE) as tx:
        job_id = await jobs.next_purged(tx)
        if job_id is None:
            return False
        gone = await jobs.purge(tx, job_id, most)
    log.info("job.history_purged", extra={"job": str(job_id), "runs": gone})
    return True


async def _resume_if_due(database: Database, workspace_id: WorkspaceId, job_id: JobId) -> None:
    async with database.tx(Role.APP, workspace_id) as tx:
        locked = await lock_job(tx, job_id, dependents=True)
        stored = await jobs.get(tx, job_id)
        # It may have been resumed or paused again since the search.
        if stored is not None and stored.paused_until is not None and stored.paused_until <= tx.now:
            # As of its end: planned times between that and this moment are no part of the pause.
            await resume_locked(
                tx, locked, Actor(ENGINE_ACTOR), catch_up=False, resumes_at=stored.paused_until
            )
