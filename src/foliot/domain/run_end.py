"""The end of a run or attempt as settlement decides it and storage writes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from foliot.domain.dependencies import EdgeCondition
from foliot.domain.ids import RunId
from foliot.domain.job import Counters, JobLoad, Timer
from foliot.domain.lifecycle import AttemptStatus, JobEvent, RunStatus
from foliot.domain.run import RunError
from foliot.domain.schedule import SkipReason

NO_CHANGE = Counters()


class Promotion(StrEnum):
    """The choice of the waiting run that starts next."""

    OLDEST = "oldest"
    MANUAL = "manual"  # the job is stopped: the oldest run that a person requested; scheduled runs wait for the resume


@dataclass(frozen=True, slots=True)
class LastRun:
    """The job's `last_*` fields. Only runs that were attempted and not skipped set them."""

    run_id: RunId
    status: RunStatus
    at: datetime
    error: RunError | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """Everything one transaction writes for one reported run."""

    run_id: RunId
    status: RunStatus  # terminal, or ready when there is another attempt
    attempt: AttemptStatus | None  # None when no attempt was under way
    error: RunError | None = None
    skip_reason: SkipReason | None = None
    note: str | None = None
    retry_at: datetime | None = None
    expires_at: datetime | None = None  # of the next attempt
    retries_used: int = 0
    losses: int = 0
    counters: Counters = NO_CHANGE
    last_run: LastRun | None = None
    event: JobEvent | None = None  # a change of the job's status
    reason: str | None = None  # of that change
    timer: Timer | None = None  # set for fixed_delay and for a job that stops
    promotes: Promotion | None = None
    wakes: tuple[EdgeCondition, ...] = ()  # the edges of dependents that this end satisfies

    @property
    def is_final(self) -> bool:
        """Whether the run has ended: dependents that wait at a gate for it are judged again."""
        return self.retry_at is None


@dataclass(slots=True)
class TimerDelta:
    """The sum of what a batch of settlements adds to one timer."""

    load: JobLoad = JobLoad()
    numbers: int = 0  # runs made beside the schedule
    live_run_id: RunId | None = None
    timer: Timer | None = None
    counters: Counters = NO_CHANGE
    last_run: LastRun | None = None
    success_id: RunId | None = None  # the last of its kind; one batch may hold several ends of one job
    failure_id: RunId | None = None
    end_id: RunId | None = None

    def add(self, settlement: Settlement) -> None:
        self.counters = self.counters.plus(settlement.counters)
        self.timer = settlement.timer or self.timer
        self.last_run = settlement.last_run or self.last_run
        # Dependents read these later; they must match the edges that this end wakes now.
        if EdgeCondition.SUCCESS in settlement.wakes:
            self.success_id = settlement.run_id
        if EdgeCondition.FAILURE in settlement.wakes:
            self.failure_id = settlement.run_id
        if EdgeCondition.ANY in settlement.wakes:
            self.end_id = settlement.run_id
