"""Edits of a job: the anchor that the new schedule keeps, and the moves of the job that follow."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.domain.schedule import Cron, Interval, Schedule
from foliot.domain.schedule.parse import anchored


def edited_schedule(old: Schedule, new: Schedule, now: datetime) -> Schedule:
    """Return the new schedule with its anchor: the old anchor if the interval is the same, else `now`.

    A caller that edits what it read sends the old anchor back; a new interval does not count from it.
    """
    if isinstance(old, Interval) and isinstance(new, Interval):
        if new.every == old.every and new.anchor is None:
            return replace(new, anchor=old.anchor)
        if new.every != old.every and new.anchor == old.anchor:
            return replace(new, anchor=now)
    if isinstance(old, Cron) and isinstance(new, Cron) and new.anchor is None and new.every_n_weeks > 1:
        same_weeks = replace(new, anchor=old.anchor)
        if same_weeks == old:
            return old
    return anchored(new, now)


def moves_of_edit(status: JobStatus, start_at: datetime | None, now: datetime) -> tuple[JobEvent, ...]:
    """Return the moves of a job whose new definition has future times. Other statuses stay: a paused job stays paused."""
    is_ahead = start_at is not None and start_at > now
    match status:
        case JobStatus.ACTIVE:
            return (JobEvent.POSTPONE,) if is_ahead else ()
        case JobStatus.PENDING:
            return () if is_ahead else (JobEvent.START,)
        case JobStatus.COMPLETED | JobStatus.EXPIRED:
            return (JobEvent.REVIVE, JobEvent.POSTPONE) if is_ahead else (JobEvent.REVIVE,)
        case _:
            return ()
