"""Jobs with planned times ahead, and the usual duration of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, PrincipalId
from foliot.storage.jobs.definitions import rules_of
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_SCANNED = 25  # records of each job that the usual duration is taken from
LEAST, MOST_COUNTED = 5_000, 100_000  # a workspace with fewer jobs is small, one with more is large
PART = 10  # between the two, a workspace is large with a tenth of all timers
FIRST_DUE = 50


@dataclass(frozen=True, slots=True)
class AgendaFilter:
    """Without any field set: all jobs."""

    job_id: JobId | None = None
    queue: str | None = None
    tag: str | None = None
    owner_id: PrincipalId | None = None


ALL = AgendaFilter()


@dataclass(frozen=True, slots=True)
class UpcomingJob:
    """A job with planned times ahead. `since` is no later than the first of them."""

    id: JobId
    name: str
    spec: str
    schedule_rev: int
    cursor: datetime
    next_at: datetime | None
    since: datetime
    paused_until: datetime | None
    runs_created: int
    skip_next: bool
    skip_until: datetime | None

    @property
    def rules(self) -> Rules:
        return rules_of(self.spec)


async def list_upcoming(
    tx: Tx, filters: AgendaFilter, end: datetime, limit: int, *, held: bool
) -> list[UpcomingJob]:
    """List jobs of the transaction's workspace with times before `end`, the soonest first.

    `held`: a freeze holds timers, so their next times are unknown.
    """
    if filters == ALL and not held and await is_large(tx):
        params = {"end": end, "limit": limit}
        found = await tx.fetch_as(UpcomingJob, sql.agenda.list_upcoming_by_due, params)
        found += await tx.fetch_as(UpcomingJob, sql.agenda.list_upcoming_after_pauses, params)
        return sorted(found, key=attrgetter("since", "id"))[:limit]
    return await tx.fetch_as(
        UpcomingJob,
        sql.agenda.list_upcoming,
        {
            "end": end,
            "held": held,
            "job_id": filters.job_id,
            "queue": filters.queue,
            "tag": filters.tag,
            "owner_id": filters.owner_id,
            "limit": limit,
        },
    )


async def sample_upcoming(
    tx: Tx, filters: AgendaFilter, end: datetime, most: int
) -> tuple[int, list[UpcomingJob]]:
    """Return how many jobs may have times before `end`, and at most `most` of them: every n-th, in a mixed order."""
    params = {
        "end": end,
        "job_id": filters.job_id,
        "queue": filters.queue,
        "tag": filters.tag,
        "owner_id": filters.owner_id,
    }
    jobs = await tx.fetch_value(int, sql.agenda.count_firing, params)
    every = -(-jobs // most) if jobs else 1
    return jobs, await tx.fetch_as(UpcomingJob, sql.agenda.sample_firing, {**params, "every": every})


async def is_large(tx: Tx) -> bool:
    """Return whether the workspace has a large share of all timers, so that a scan of timers by due time finds its own soon.

    The timers of a small workspace are found through its jobs.
    """
    params = {"least": LEAST, "most": MOST_COUNTED, "part": PART}
    share = await tx.fetch_value(_TimerShare, sql.agenda.load_timer_share, params)
    return share.own >= max(LEAST, min(MOST_COUNTED, int(share.timers / PART)))


async def find_next_run(tx: Tx) -> datetime | None:
    """Return when a job of this large workspace runs next."""
    rows = await tx.fetch_as(_Timer, sql.agenda.list_first_due, {"limit": FIRST_DUE})
    first = min((row.next_at for row in rows if row.next_at is not None), default=None)
    # Timers beyond these are due no earlier than the last of them, and so run no earlier.
    if len(rows) < FIRST_DUE or (first is not None and first <= rows[-1].due_at):
        return first
    return await find_next_run_of(tx, None)


async def find_next_run_of(tx: Tx, owner_id: PrincipalId | None) -> datetime | None:
    """Return when a job of this workspace, or of one owner in it, runs next."""
    return await tx.fetch_one_as(datetime, sql.agenda.find_next_run, {"owner_id": owner_id})


async def load_usual_durations(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, timedelta]:
    """Return the usual duration of each job's runs; without an entry for a job that never succeeded."""
    if not job_ids:
        return {}
    params = {"job_ids": list(job_ids), "scan": MOST_SCANNED}
    return dict(await tx.fetch_pairs(JobId, timedelta, sql.agenda.load_usual_durations, params))


class _TimerShare(NamedTuple):
    timers: float
    own: int


class _Timer(NamedTuple):
    due_at: datetime
    next_at: datetime | None
