"""Check the quota of jobs in the transaction that creates one.

Why: docs/decisions/702-rates-and-quotas.md
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from foliot.domain.access import Actor
from foliot.domain.errors import Conflict
from foliot.domain.ids import WorkspaceId
from foliot.domain.quotas import check_archived_jobs, check_jobs, check_own_jobs
from foliot.storage.identity import workspaces
from foliot.storage.tx import Database, Tx

NEAR = 1_000  # jobs below the limit; fewer transactions than that create jobs of one workspace at once
COUNTED = 1_000_000  # counting further costs more than it is worth
WORTH_REMEMBERING = 1_000  # jobs; fewer are counted quickly
SLACK = timedelta(seconds=1)  # for a clock that was set back a little
REMEMBERED = timedelta(minutes=10)
MOST = 10_000  # workspaces remembered


@dataclass(frozen=True, slots=True)
class _Count:
    at: datetime
    jobs: int


_counts: WeakKeyDictionary[Database, dict[WorkspaceId, _Count]] = WeakKeyDictionary()


async def check_job_quota(database: Database, tx: Tx, actor: Actor) -> None:
    """Call this after the insert, so that the new job counts. Near the limit, a lock makes writers wait for each other, so that
    two cannot take the last place; far from it they do not wait.
    """
    quotas, owner_id = actor.quotas, actor.principal_id
    found = await workspaces.load_usage(tx, 0)
    if found.is_archived:
        raise Conflict("This workspace is archived.", hint="Nothing can be made in it any more.")
    if quotas.own_jobs is not None and owner_id is not None:
        await workspaces.lock_quota(tx)
        check_own_jobs(quotas, await workspaces.count_owned_jobs(tx, owner_id, quotas.own_jobs + 1))
    if quotas.jobs is None or await _at_most(database, tx, quotas.jobs) <= quotas.jobs - NEAR:
        return
    await workspaces.lock_quota(tx)
    found = await workspaces.load_usage(tx, quotas.jobs + 1)
    if found.jobs > quotas.jobs:
        check_jobs(quotas, (await workspaces.load_usage(tx, COUNTED)).jobs)


async def check_archived_quota(tx: Tx, actor: Actor) -> None:
    """Call this after a job is archived, so that it counts. As for jobs, writers wait for each other only near the limit."""
    limit = actor.quotas.archived_jobs
    if limit is None:
        return
    far = max(0, limit - NEAR)
    if far and await workspaces.count_archived_jobs(tx, far) < far:
        return
    await workspaces.lock_quota(tx)
    check_archived_jobs(actor.quotas, await workspaces.count_archived_jobs(tx, limit + 1))


async def check_restored_quota(database: Database, tx: Tx, actor: Actor) -> None:
    """The same after a job came back from the archive. A remembered count does not know of it, so the jobs are counted."""
    assert tx.workspace_id is not None
    _counts.setdefault(database, {}).pop(tx.workspace_id, None)
    await check_job_quota(database, tx, actor)


async def _at_most(database: Database, tx: Tx, limit: int) -> int:
    """Upper bound on the job count. A remembered count can only be exceeded by jobs created since, on any node, which are few and at
    the end of the index, and by jobs restored on another node: NEAR covers a thousand of them in ten minutes.
    """
    assert tx.workspace_id is not None
    known = _counts.setdefault(database, {})
    last = known.get(tx.workspace_id)
    if last is not None and tx.now - last.at < REMEMBERED:
        # Jobs of transactions that were open during the count are covered by NEAR.
        made = await workspaces.count_jobs_created(tx, last.at - SLACK, tx.now + SLACK, WORTH_REMEMBERING)
        if made < WORTH_REMEMBERING and last.jobs + made + NEAR <= limit - NEAR:
            return last.jobs + made + NEAR
    counted = (await workspaces.load_usage(tx, limit + 1)).jobs
    if counted > WORTH_REMEMBERING:
        if len(known) >= MOST:
            known.clear()
        known[tx.workspace_id] = _Count(tx.now, counted)
    return counted
