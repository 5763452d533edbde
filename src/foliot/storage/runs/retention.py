"""Pruning: records beyond their job's retention go, in bounded batches, once the days they belong to are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from foliot.domain.ids import JobId
from foliot.domain.policy import Retention, RetentionMode
from foliot.storage.codec import decode
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class JobRetention:
    """A job, what it keeps, and the highest number any of its records has."""

    job_id: JobId
    retention: Retention
    number: int

    @property
    def may_have_too_much(self) -> bool:
        return self.retention.mode is RetentionMode.ANY or self.number > self.retention.keep_last


async def next_jobs(tx: Tx, after: UUID, limit: int) -> list[JobRetention]:
    rows = await tx.fetch(sql.retention.next_jobs, {"after": after, "limit": limit})
    return [JobRetention(row["id"], decode(Retention, row["retention"] or {}), row["number"]) for row in rows]


async def prune(tx: Tx, jobs: Sequence[JobRetention], most: int) -> tuple[int, int]:
    """How many runs and attempts went: at most `most` runs."""
    row = await tx.fetch_one(
        sql.retention.prune,
        {
            "job_ids": [job.job_id for job in jobs],
            "horizons": [tx.now - job.retention.keep for job in jobs],
            "keep_lasts": [job.retention.keep_last for job in jobs],
            "stricts": [job.retention.mode is RetentionMode.ANY for job in jobs],
            "most": most,
        },
    )
    assert row is not None
    return row["runs"], row["attempts"]
