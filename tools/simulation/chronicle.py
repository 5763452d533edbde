"""What was asked of the engine, told by the driver and not read back from the database: the other half of every comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from foliot.domain.definition import Rules, Spec
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.schedule import Calendar, Timetable


@dataclass(frozen=True, slots=True)
class Chapter:
    """A stretch in which one schedule was in force: planned times count from `since` on."""

    schedule_rev: int
    timetable: Timetable
    since: datetime


@dataclass(slots=True)
class Frozen:
    start_at: datetime
    end_at: datetime
    minded: int = 0  # how often nodes have looked after it since its end

    def holds(self, at: datetime) -> bool:
        return self.start_at <= at < self.end_at


@dataclass(slots=True)
class Story:
    """One job, from its creation through its edits."""

    id: JobId
    workspace_id: WorkspaceId
    name: str
    spec: Spec
    calendars: tuple[Calendar, ...]
    chapters: list[Chapter] = field(default_factory=list)
    paused: list[datetime] = field(default_factory=list)
    resumed: list[datetime] = field(default_factory=list)
    frozen: list[Frozen] = field(default_factory=list)

    @property
    def is_guarded(self) -> bool:
        """Whether a window or a calendar says when it may start."""
        return self.spec.window is not None or bool(self.calendars)

    def is_frozen(self, at: datetime) -> bool:
        return any(frozen.holds(at) for frozen in self.frozen)

    def begin(self, spec: Spec, schedule_rev: int, since: datetime) -> None:
        self.spec = spec
        job = Rules(spec).job(self.id, self.workspace_id, schedule_rev, self.calendars)
        self.chapters.append(Chapter(schedule_rev, job.timetable, since))


@dataclass(slots=True)
class Chronicle:
    stories: dict[JobId, Story] = field(default_factory=dict)
    ticks: list[datetime] = field(default_factory=list)  # that left nothing due behind
    freezes: list[Frozen] = field(default_factory=list)  # that nodes still have to mind
