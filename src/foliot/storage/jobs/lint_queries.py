"""Counts for warnings about a job: other jobs of the same minute, address and name."""

from __future__ import annotations

from datetime import datetime, timedelta

from foliot.domain.ids import JobId, PrincipalId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_COUNTED = 2_000
HOUR = timedelta(hours=1)


async def count_by_minute(tx: Tx, job_id: JobId, at: datetime) -> dict[int, int]:
    """Count the other jobs that are due within the hour of `at`, by minute."""
    start = at.replace(minute=0, second=0, microsecond=0)
    params = {"job_id": job_id, "start": start, "end": start + HOUR, "most": MOST_COUNTED}
    return dict(await tx.fetch_pairs(int, int, sql.lint_queries.count_by_minute, params))


async def count_with_url(tx: Tx, job_id: JobId, url: str, most: int) -> int:
    """Count the other http jobs with this address, up to `most`."""
    params = {"job_id": job_id, "url": url, "most": most}
    return await tx.fetch_value(int, sql.lint_queries.count_with_url, params)


async def has_namesake(tx: Tx, job_id: JobId, name: str, owner_id: PrincipalId | None) -> bool:
    """Return whether another job of this owner has the name: an agent does not learn of the jobs of others."""
    params = {"job_id": job_id, "name": name, "owner_id": owner_id}
    return await tx.fetch_value(bool, sql.lint_queries.has_namesake, params)
