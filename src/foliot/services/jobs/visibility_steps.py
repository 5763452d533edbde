"""Find a job or run within the caller's scope. To an agent, jobs of other owners do not exist."""

from __future__ import annotations

from typing import Protocol, TypeVar

from foliot.domain.access import Scope
from foliot.domain.errors import not_found
from foliot.domain.ids import JobId, RunId
from foliot.storage.jobs import jobs
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.runs import explain_queries, run_history
from foliot.storage.runs.run_history import RunWithRevision
from foliot.storage.tx import Tx


class AboutJob(Protocol):
    @property
    def job_id(self) -> JobId | None: ...


Found = TypeVar("Found", bound=AboutJob)


async def check_job_visible(tx: Tx, job_id: JobId, scope: Scope) -> None:
    if not await explain_queries.job_exists(tx, job_id, scope.visible_owner):
        raise not_found("job")


async def require_visible_job(tx: Tx, job_id: JobId, scope: Scope) -> StoredJob:
    found = await jobs.get(tx, job_id)
    if found is None or scope.visible_owner not in (None, found.definition.owner_id):
        raise not_found("job")
    return found


async def require_visible(tx: Tx, found: Found | None, noun: str, scope: Scope) -> Found:
    """Return what was found about a job. To an agent, what is about no job does not exist either."""
    owner = scope.visible_owner
    if found is None or (
        owner is not None
        and (found.job_id is None or not await explain_queries.job_exists(tx, found.job_id, owner))
    ):
        raise not_found(noun)
    return found


async def require_visible_run(tx: Tx, run_id: RunId, scope: Scope) -> RunWithRevision:
    found = await run_history.load_run(tx, run_id)
    owner = scope.visible_owner
    if found is None or (
        owner is not None and not await explain_queries.job_exists(tx, found.run.job_id, owner)
    ):
        raise not_found("run")
    return found
