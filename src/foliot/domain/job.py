"""A job as decisions read it: definition, timer and counters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import JobEvent
from foliot.domain.policy import Breaker, Limits, Misfire, Overlap, Retention, Retry
from foliot.domain.schedule import Interval, Once, Timetable, is_chained


@dataclass(frozen=True, slots=True)
class Job:
    """The part of a definition that decisions read. Only an edit changes it, so one value serves many ticks."""

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
    retry_timeouts: bool = True
    shadow: bool = False

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


class JobLoad(NamedTuple):
    """The numbers of runs of a job that are live, and that wait for their turn behind them.

    A live run is ready, leased, or first in line at a gate, window, freeze or limit.
    """

    live: int = 0
    waiting: int = 0

    @property
    def is_idle(self) -> bool:
        return self.live + self.waiting <= 0

    def start(self) -> JobLoad:
        """Add a live run."""
        return JobLoad(self.live + 1, self.waiting)

    def queue(self) -> JobLoad:
        """Add a run that waits for its turn."""
        return JobLoad(self.live, self.waiting + 1)

    def promote(self) -> JobLoad:
        """Make a waiting run live."""
        return JobLoad(self.live + 1, self.waiting - 1)

    def requeue(self, runs: int = 1) -> JobLoad:
        """Make live runs wait for their turn again."""
        return JobLoad(self.live - runs, self.waiting + runs)

    def end(self, *, is_live: bool = True) -> JobLoad:
        """Remove a run that ends."""
        return JobLoad(self.live - 1, self.waiting) if is_live else JobLoad(self.live, self.waiting - 1)

    def since(self, before: JobLoad) -> JobLoad:
        """Return the difference to an earlier load, as a timer adds it."""
        return JobLoad(self.live - before.live, self.waiting - before.waiting)


@dataclass(frozen=True, slots=True)
class Counters:
    """The amounts that a decision adds to a job's counters. A skip touches none but its own.

    `fires` counts runs made by the schedule, `runs` those that ended after at least one attempt, `skips` planned
    times that did not run (a range beyond counting adds the number it was counted to).
    """

    fires: int = 0
    runs: int = 0
    successes: int = 0
    failures: int = 0
    skips: int = 0
    failures_in_a_row: int = 0
    ends_streak: bool = False  # failures_in_a_row goes to nought
    failed_attempts: int = 0  # failed, timed out or lost, those with a retry included

    def plus(self, other: Counters) -> Counters:
        """Add what a later decision adds."""
        streak = 0 if other.ends_streak else self.failures_in_a_row
        return Counters(
            self.fires + other.fires,
            self.runs + other.runs,
            self.successes + other.successes,
            self.failures + other.failures,
            self.skips + other.skips,
            streak + other.failures_in_a_row,
            self.ends_streak or other.ends_streak,
            self.failed_attempts + other.failed_attempts,
        )
