"""Revisions: every definition that a job ever had. `jobs.sql` writes them in the statements that write the job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.definition import Definition
from foliot.domain.ids import JobId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class Revision:
    job_id: JobId
    revision: int
    schedule_rev: int
    at: datetime
    actor: str
    note: str | None
    definition: Definition


async def get(tx: Tx, job_id: JobId, revision: int) -> Revision | None:
    return await tx.fetch_one_as(Revision, sql.revisions.get, {"job_id": job_id, "revision": revision})


async def find_in_force(tx: Tx, job_id: JobId, at: datetime) -> Revision | None:
    """Return the revision in force at `at`; None before the first."""
    return await tx.fetch_one_as(Revision, sql.revisions.find_in_force, {"job_id": job_id, "at": at})


async def page(tx: Tx, job_id: JobId, before: int | None, limit: int) -> list[Revision]:
    """List revisions older than `before`, newest first."""
    params = {"job_id": job_id, "before": before, "limit": limit}
    return await tx.fetch_as(Revision, sql.revisions.page, params)
