"""The log of all commands given to the engine, written by the driver and not read from the database: one side of every comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from foliot.domain.definition import Rules, Spec
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.schedule import Calendar, Timetable


@dataclass(frozen=True, slots=True)
class SchedulePeriod:
    """A period with one schedule: planned times count from `since` on."""

    schedule_rev: int
    timetable: Timetable
    since: datetime


@dataclass(slots=True)
class FreezePeriod:
    start_at: datetime
    end_at: datetime
    checks: int = 0  # by nodes since its end

    def holds(self, at: datetime) -> bool:
        return self.start_at <= at < self.end_at


@dataclass(slots=True)
class JobHistory:
    """One job, from its creation through its edits."""

    id: JobId
    workspace_id: WorkspaceId
    name: str
    spec: Spec
    calendars: tuple[Calendar, ...]
    periods: list[SchedulePeriod] = field(default_factory=list)
    paused: list[datetime] = field(default_factory=list)
    resumed: list[datetime] = field(default_factory=list)
    frozen: list[FreezePeriod] = field(default_factory=list)
    skips: int = 0  # commands to skip the next time

    @property
    def commands(self) -> int:
        """Return how many commands could have changed what becomes of its planned times."""
        return len(self.periods) + len(self.paused) + len(self.resumed) + len(self.frozen) + self.skips

    @property
    def is_guarded(self) -> bool:
        """Return whether a window or a calendar restricts its starts."""
        return self.spec.window is not None or bool(self.calendars)

    def is_frozen(self, at: datetime) -> bool:
        return any(frozen.holds(at) for frozen in self.frozen)

    def begin(self, spec: Spec, schedule_rev: int, since: datetime) -> None:
        self.spec = spec
        job = Rules(spec).job(self.id, self.workspace_id, schedule_rev, self.calendars)
        self.periods.append(SchedulePeriod(schedule_rev, job.timetable, since))


@dataclass(slots=True)
class CommandLog:
    histories: dict[JobId, JobHistory] = field(default_factory=dict)
    ticks: list[datetime] = field(default_factory=list)  # that left no timer due
    freezes: list[FreezePeriod] = field(default_factory=list)  # that nodes still have to check
