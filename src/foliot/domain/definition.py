"""The definition of a job as its author wrote it, and the part that planning and dispatch read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any

from foliot.domain.dependencies import Edge, JoinRule
from foliot.domain.ids import CalendarId, JobId, PrincipalId, WorkspaceId
from foliot.domain.job import Job
from foliot.domain.policy import (
    Breaker,
    Limits,
    Misfire,
    NotifyPolicy,
    Overlap,
    OverlapRule,
    Retention,
    Retry,
)
from foliot.domain.run import Target, TargetKind
from foliot.domain.run_plan import SharedPlan
from foliot.domain.schedule import Calendar, Cron, Interval, Schedule, Timetable, Window, is_chained
from foliot.domain.schedule.calendar import CalendarScope
from foliot.domain.usage import Budget
from foliot.domain.webhooks import CHECK_IN

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """Schedule, policies and destination of a job. Jobs with equal specs share one value."""

    schedule: Schedule
    type: str
    queue: str = "default"
    priority: int = 0  # smaller goes first
    concurrency_key: str | None = None
    tags: tuple[str, ...] = ()
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    window: Window | None = None
    calendars: tuple[CalendarId, ...] = ()
    retry: Retry = Retry()
    overlap: Overlap = Overlap()
    misfire: Misfire = Misfire()
    breaker: Breaker = Breaker()
    limits: Limits = Limits()
    depends_when: JoinRule = JoinRule.ALL
    target: Target | None = None  # None: whichever worker serves its queue
    read_only: bool = False  # on a host, several that only look go at once
    retry_timeouts: bool = True  # False: a timed-out attempt ends the run
    shadow: bool = False  # True: planned times are recorded and do not run
    budgets: tuple[Budget, ...] = ()  # of what its runs use

    def is_in(self, scope: CalendarScope) -> bool:
        target = self.target
        host = target.name if target is not None and target.kind is TargetKind.HOST else None
        return scope.covers(self.type, self.queue, self.tags, host)

    def on(self, schedule: Schedule) -> Spec:
        """Return this spec with another schedule, three times as fast as `dataclasses.replace`."""
        return Spec(schedule, *_other_fields(self))


_other_fields = attrgetter(*(each.name for each in fields(Spec) if each.name != "schedule"))


@dataclass(frozen=True, slots=True)
class Definition:
    """Everything that the author of a job wrote. Status, counters and run times are not part of it."""

    name: str
    spec: Spec
    description: str = ""
    config: Json = field(default_factory=dict)
    payload: Json = field(default_factory=dict)
    retention: Retention = Retention()
    depends_on: tuple[Edge, ...] = ()
    owner_id: PrincipalId | None = None
    external_ref: Json | None = None
    notify: NotifyPolicy | None = None  # None: the rules of the workspace decide
    inherited: Mapping[str, str] = field(
        default_factory=dict
    )  # names of fields -> the level that their value comes from

    @property
    def managed_by(self) -> str | None:
        """The app in whose code this job is written; None where people write it."""
        ref = self.external_ref or {}
        app = ref.get("app") if ref.get("source") == "code" else None
        return app if isinstance(app, str) and app else None


@dataclass(frozen=True)
class Rules:
    """A spec prepared for evaluation, once for all jobs that share it."""

    spec: Spec

    @cached_property
    def timetable(self) -> Timetable:
        spec = self.spec
        return Timetable(spec.schedule, start_at=spec.start_at, end_at=spec.end_at, window=spec.window)

    @cached_property
    def is_exclusive(self) -> bool:
        return self.spec.overlap.rule is not OverlapRule.CONCURRENT

    @property
    def cancels_running(self) -> bool:
        """Whether a new run of it may put an end to another."""
        return self.spec.overlap.rule is OverlapRule.CANCEL_RUNNING

    @cached_property
    def is_seeded(self) -> bool:
        """Whether planned times differ from job to job: hashed fields and spread do that."""
        schedule = self.spec.schedule
        if not isinstance(schedule, Cron | Interval):
            return False
        return bool(schedule.spread) or (isinstance(schedule, Cron) and "H" in schedule.expr.upper())

    @cached_property
    def is_chained(self) -> bool:
        return is_chained(self.spec.schedule)

    @cached_property
    def is_shareable(self) -> bool:
        """Return whether planned times depend on schedule and cursor alone, and nothing in the rules keeps a due run from starting."""
        spec = self.spec
        is_bounded = spec.max_runs is not None or spec.limits.start_deadline is not None
        is_gated = spec.window is not None or bool(spec.calendars) or spec.target is not None or spec.shadow
        return not (is_bounded or is_gated or self.is_seeded or self.is_chained)

    @cached_property
    def shared_plans(self) -> dict[datetime, SharedPlan | None]:
        """The plans that `planning.fast_path` has made for these rules, by cursor."""
        return {}

    def on(self, schedule: Schedule) -> Rules:
        """Return the same with another anchor: what does not depend on it is known already."""
        other = Rules(self.spec.on(schedule))
        vars(other).update(
            is_exclusive=self.is_exclusive,
            is_seeded=self.is_seeded,
            is_chained=self.is_chained,
            is_shareable=self.is_shareable,
        )
        return other

    def job(
        self,
        job_id: JobId,
        workspace_id: WorkspaceId,
        schedule_rev: int,
        calendars: tuple[Calendar, ...] = (),
    ) -> Job:
        spec, timetable = self.spec, self.timetable
        if calendars or self.is_seeded:
            timetable = replace(timetable, seed=str(job_id), calendars=calendars)
        return Job(
            id=job_id,
            workspace_id=workspace_id,
            timetable=timetable,
            schedule_rev=schedule_rev,
            retry=spec.retry,
            overlap=spec.overlap,
            misfire=spec.misfire,
            breaker=spec.breaker,
            limits=spec.limits,
            max_runs=spec.max_runs,
            retry_timeouts=spec.retry_timeouts and spec.type != CHECK_IN,
            shadow=spec.shadow,
        )
