"""Jobs as values: the definition as decisions read it, its timer, its counters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import JobEvent
from foliot.domain.policy import Breaker, Limits, Misfire, Overlap, Retention, Retry
from foliot.domain.schedule import Interval, Once, Timetable, is_chained


@dataclass(frozen=True, slots=True)
class Job:
    """The part of a definition that decisions read. It changes only by an edit, so one value serves many ticks."""

    id: JobId
    workspace_id: WorkspaceId
    timetable: Timetable
    name: str = ""
    schedule_rev: int = 1
    retry: Retry = Retry()
    overlap: Overlap = Overlap()
    misfire: Misfire = Misfire()
    breaker: Breaker = Breaker()
    limits: Limits = Limits()
    retention: Retention = Retention()
    max_runs: int | None = None

    def __post_init__(self) -> None:
        if self.max_runs is not None and self.max_runs < 1:
            raise Invalid("max_runs is at least 1.", pointer="/max_runs", hint="Leave it out for no limit.")

    @property
    def is_once(self) -> bool:
        return isinstance(self.timetable.schedule, Once)

    @property
    def is_chained(self) -> bool:
        """Each planned time hangs on the end of the run before it (fixed_delay)."""
        return is_chained(self.timetable.schedule)

    @property
    def interval(self) -> timedelta | None:
        schedule = self.timetable.schedule
        return schedule.every if isinstance(schedule, Interval) else None


@dataclass(frozen=True, slots=True)
class Timer:
    """A job's place in its timetable.

    `cursor` is the planned time consumed last, or the instant of creation or resume; for fixed_delay, the end of the
    last run. `due_at` is when the tick must look again (None: not before something else happens) and `next_at` when
    the next planned time goes off: the two differ only before `start_at`. `ending` is what becomes of the job once
    none of its runs is live, when its timetable has nothing left.
    """

    cursor: datetime
    due_at: datetime | None
    next_at: datetime | None
    ending: JobEvent | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """What a decision adds to a job's counters. A skip touches none but its own.

    `fires` counts runs made by the schedule, `runs` those that ended after at least one attempt, `skips` planned
    times that did not run (a gap beyond counting adds the number it was counted to).
    """

    fires: int = 0
    runs: int = 0
    successes: int = 0
    failures: int = 0
    skips: int = 0
    failures_in_a_row: int = 0
    ends_streak: bool = False  # failures_in_a_row goes to nought
