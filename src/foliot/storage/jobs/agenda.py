"""Jobs with times ahead, and how long their runs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter

from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, PrincipalId
from foliot.storage.jobs.definitions import rules_of
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_SCANNED = 25  # records of each job, to find what its runs take
LEAST, MOST_COUNTED = (
    5_000,
    100_000,
)  # jobs of a workspace that is large whatever else there is; where counting ends
PART = 10  # of all timers: from a tenth on
LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class AgendaFilter:
    """Empty means all jobs."""

    job_id: JobId | None = None
    queue: str | None = None
    tag: str | None = None
    owner_id: PrincipalId | None = None


ALL = AgendaFilter()


@dataclass(frozen=True, slots=True)
class UpcomingJob:
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


async def list_upcoming(
    tx: Tx, wanted: AgendaFilter, end: datetime, limit: int, *, held: bool
) -> list[UpcomingJob]:
    """Of the workspace of the transaction, the soonest first. `held`: a freeze holds timers, which then do not say when."""
    if wanted == ALL and not held and await is_large(tx):
        params = {"workspace_id": tx.workspace_id, "end": end, "limit": limit}
        rows = await tx.fetch(sql.agenda.ahead_along_due, params)
        rows += await tx.fetch(sql.agenda.ahead_after_pauses, params)
        rows = sorted(rows, key=itemgetter("since", "id"))[:limit]
    else:
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
        UpcomingJob(
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


async def is_large(tx: Tx) -> bool:
    """Whether so many of all timers are this workspace's that a walk along them meets its own soon. Others are found through their
    jobs, which are few then.
    """
    params = {"workspace_id": tx.workspace_id, "least": LEAST, "most": MOST_COUNTED, "part": PART}
    row = await tx.fetch_one(sql.agenda.share, params)
    return row is not None and row["own"] >= max(LEAST, min(MOST_COUNTED, int(row["timers"] / PART)))


async def find_next_run(tx: Tx) -> datetime | None:
    """When a job of this workspace runs next; for a large one."""
    rows = await tx.fetch(sql.agenda.soonest, {"workspace_id": tx.workspace_id, "limit": LOOKED_AT})
    times = [row["next_at"] for row in rows if row["next_at"] is not None]
    first: datetime | None = min(times, default=None)
    # Behind those looked at come timers that are due no earlier than the last of them, and so run no earlier.
    if len(rows) < LOOKED_AT or (first is not None and first <= rows[-1]["due_at"]):
        return first
    return await find_next_run_of(tx, None)


async def find_next_run_of(tx: Tx, owner_id: PrincipalId | None) -> datetime | None:
    """When a job runs next, of all in this workspace or of one owner's."""
    params = {"workspace_id": tx.workspace_id, "owner_id": owner_id}
    row = await tx.fetch_one(sql.agenda.next_due, params)
    return None if row is None else row["next_at"]


async def load_usual_durations(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, timedelta]:
    """What runs of these jobs usually take, as far as any has succeeded."""
    if not job_ids:
        return {}
    params = {"workspace_id": tx.workspace_id, "job_ids": list(job_ids), "scan": MOST_SCANNED}
    rows = await tx.fetch(sql.agenda.expected, params)
    return {row["job_id"]: timedelta(seconds=row["seconds"]) for row in rows}
