"""Revisions: every definition a job ever had. They are written with the job itself, in `sql/jobs.sql`; here they are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.definition import Definition
from foliot.domain.ids import JobId
from foliot.storage.jobs.definitions import definition_of
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


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
    row = await tx.fetch_one(sql.revisions.get, {"job_id": job_id, "revision": revision})
    return None if row is None else _of(row)


async def in_force(tx: Tx, job_id: JobId, at: datetime) -> Revision | None:
    """None before the first that is known."""
    row = await tx.fetch_one(sql.revisions.in_force, {"job_id": job_id, "at": at})
    return None if row is None else _of(row)


async def page(tx: Tx, job_id: JobId, before: int | None, limit: int) -> list[Revision]:
    """Newest first, those older than `before`."""
    rows = await tx.fetch(sql.revisions.page, {"job_id": job_id, "before": before, "limit": limit})
    return [_of(row) for row in rows]


def _of(row: Row) -> Revision:
    return Revision(**{**row, "definition": definition_of(row["definition"])})
