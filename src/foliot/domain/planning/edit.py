"""What an edit means: which parts of a schedule live on in the new one, and which moves of the job follow from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.domain.schedule import Cron, Interval, Schedule
from foliot.domain.schedule.parse import anchored


def edited_schedule(old: Schedule, new: Schedule, now: datetime) -> Schedule:
    """The new schedule with its anchor: the old one where the pace is the same, else this instant.

    Somebody who sends back what was read sends the old anchor with it; a new pace does not count from there.
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
    """What becomes of the job's status if its new definition has times ahead. A job that somebody stopped stays stopped."""
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
