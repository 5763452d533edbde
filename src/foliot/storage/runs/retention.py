"""Delete records beyond their job's retention, in bounded batches, once the totals of their days are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from foliot.domain.ids import JobId
from foliot.domain.policy import Retention, RetentionMode
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class JobRetention:
    """A job, its retention, and the highest number of its records."""

    job_id: JobId
    retention: Retention
    number: int

    @property
    def may_have_too_much(self) -> bool:
        return self.retention.mode is RetentionMode.ANY or self.number > self.retention.keep_last


async def next_jobs(tx: Tx, after: UUID, limit: int) -> list[JobRetention]:
    return await tx.fetch_as(JobRetention, sql.retention.list_jobs, {"after": after, "limit": limit})


async def prune(tx: Tx, jobs: Sequence[JobRetention], most: int) -> tuple[int, int]:
    """Delete at most `most` runs, and return the numbers of deleted runs and attempts."""
    [counts] = await tx.fetch_pairs(
        int,
        int,
        sql.retention.prune,
        {
            "job_ids": [job.job_id for job in jobs],
            "horizons": [tx.now - job.retention.keep for job in jobs],
            "keep_lasts": [job.retention.keep_last for job in jobs],
            "stricts": [job.retention.mode is RetentionMode.ANY for job in jobs],
            "most": most,
        },
    )
    return counts
