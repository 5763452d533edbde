"""Jobs with times ahead, and how long their runs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, PrincipalId
from foliot.storage.definitions import rules_of
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_SCANNED = 25  # records of each job, to find what its runs take


@dataclass(frozen=True, slots=True)
class Wanted:
    """Empty means all jobs."""

    job_id: JobId | None = None
    queue: str | None = None
    tag: str | None = None
    owner_id: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class JobAhead:
    """`since` is no later than the first of its times ahead."""

    id: JobId
    name: str
    rules: Rules
    schedule_rev: int
    cursor: datetime
    next_at: datetime | None
    since: datetime
    paused_until: datetime | None
    runs_created: int
    skip_next: bool


async def ahead(tx: Tx, wanted: Wanted, end: datetime, limit: int, *, held: bool) -> list[JobAhead]:
    """Of the workspace of the transaction, the soonest first. `held`: a freeze holds timers, which then do not say when."""
    rows = await tx.fetch(
        sql.agenda.ahead,
        {
            "workspace_id": tx.workspace_id,
            "end": end,
            "held": held,
            "job_id": wanted.job_id,
            "queue": wanted.queue,
            "tag": wanted.tag,
            "owner_id": wanted.owner_id,
            "limit": limit,
        },
    )
    return [
        JobAhead(
            id=row["id"],
            name=row["name"],
            rules=rules_of(row["spec"]),
            schedule_rev=row["schedule_rev"],
            cursor=row["cursor_at"],
            next_at=row["next_at"],
            since=row["since"],
            paused_until=row["paused_until"],
            runs_created=row["runs_created"],
            skip_next=row["skip_next"] is not None,
        )
        for row in rows
    ]


async def expected(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, timedelta]:
    """What runs of these jobs usually take, as far as any has succeeded."""
    if not job_ids:
        return {}
    params = {"workspace_id": tx.workspace_id, "job_ids": list(job_ids), "scan": MOST_SCANNED}
    rows = await tx.fetch(sql.agenda.expected, params)
    return {row["job_id"]: timedelta(seconds=row["seconds"]) for row in rows}
