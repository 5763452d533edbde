"""The plan of a due job as planning decides it and storage writes it: records in their order, and the next timer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from foliot.domain.dependencies import ConsumedRun
from foliot.domain.job import Counters, JobLoad, Timer
from foliot.domain.lifecycle import JobEvent, RunStatus
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import PlannedTime, SkipReason

UPSTREAM_TOO_LATE = "the upstream job did not end in time"
SCHEDULE_EDITED = "it was put off, and the schedule was edited before its time had come"
FIRED_LATE = "Foliot was late, and an earlier planned time that was due at the same moment runs in its place"
MAX_COUNTED = 10_000  # a range with more planned times has no exact count


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to insert, ready or waiting."""

    planned: PlannedTime
    status: RunStatus = RunStatus.READY
    waits_for: WaitsFor | None = None
    catch_up: bool = False
    cancels_live: bool = False  # the run that was live before this plan
    not_before: datetime | None = None
    expires_at: datetime | None = (
        None  # start deadline, window's end, or the time at which it gives way at its gate
    )
    consumes: tuple[ConsumedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedTime:
    """One planned time that does not run."""

    planned: PlannedTime
    reason: SkipReason
    note: str | None = None


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """Several planned times that do not run, as one record. `count` is None beyond MAX_COUNTED; `first` identifies it.

    A planned time between `first` and `last` that has a record of its own is not in the count.
    """

    first: PlannedTime
    last: PlannedTime
    count: int | None
    reason: SkipReason
    note: str | None = None


@dataclass(frozen=True, slots=True)
class EndGateWait:
    """The live run, still waiting at its gate, gives way to the next planned time: it ends skipped."""

    reason: SkipReason
    note: str


PlanRecord = NewRun | SkippedTime | SkippedRange | EndGateWait


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one transaction writes for one due job."""

    records: tuple[PlanRecord, ...]
    timer: Timer
    events: tuple[JobEvent, ...] = ()  # changes of the job's status, in order
    uses_skip_next: bool = False
    promotes: bool = False  # the oldest waiting run becomes ready

    @property
    def runs(self) -> tuple[NewRun, ...]:
        return tuple(record for record in self.records if isinstance(record, NewRun))

    def load_after(self, load: JobLoad) -> JobLoad:
        """Return the load of the job with the new runs of this plan."""
        for run in self.runs:
            load = load.queue() if run.waits_for is WaitsFor.TURN else load.start()
        return load

    @property
    def counters(self) -> Counters:
        fires = skips = 0
        for record in self.records:
            match record:
                case NewRun():
                    fires += 1
                case SkippedTime() | EndGateWait():
                    skips += 1
                case SkippedRange(count=count):
                    skips += MAX_COUNTED if count is None else count
        return Counters(fires=fires, skips=skips)


class SharedPlan(NamedTuple):
    """A plan that all jobs with the same rules and cursor share, and the instants between which it holds."""

    plan: Plan
    due_at: datetime
    late_after: datetime
    following_at: datetime

    def is_on_time(self, now: datetime) -> bool:
        """Return whether the plan holds at `now`: its planned time is due, not late, and the only one."""
        return self.due_at <= now <= self.late_after and now < self.following_at
