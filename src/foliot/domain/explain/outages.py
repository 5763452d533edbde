"""Times in which no scheduler ran, as facts of an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.explain.records import quote
from foliot.domain.job import Job

SILENT_AFTER = timedelta(seconds=15)  # a scheduler that runs ticks every five seconds or more often


@dataclass(frozen=True, slots=True)
class SchedulerOutage:
    """No scheduler of any node ticked in this time: nothing was planned, started or skipped."""

    started_at: datetime
    ended_at: datetime


def is_silent(ticked_at: datetime | None, now: datetime) -> bool:
    """Return whether no scheduler runs now. Before the first tick nothing is known."""
    return ticked_at is not None and now - ticked_at > SILENT_AFTER


def silence(job: Job, ticked_at: datetime) -> str:
    return f"No scheduler of Foliot has run since {quote(job, ticked_at)}."


def outage_facts(
    job: Job, outages: Sequence[SchedulerOutage], start: datetime, end: datetime | None = None
) -> tuple[str, ...]:
    """Name the outages that cover planned times from `start` to `end`."""
    until = end or start
    return tuple(
        f"No scheduler of Foliot ran from {quote(job, each.started_at)} to {quote(job, each.ended_at)}."
        for each in sorted(outages, key=lambda each: each.started_at)
        if each.started_at <= until and start < each.ended_at
    )
