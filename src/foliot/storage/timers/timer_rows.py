"""A timer as it is read: a row of the columns that every statement on due and locked timers answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.job import JobLoad, Timer
from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.storage.jobs.definitions import rules_of

_STATUSES = {status.value: status for status in JobStatus}


class TimerRow(NamedTuple):
    """A timer under its lock, with the rules of its job. A tuple, since a tick makes thousands of them a second."""

    workspace_id: WorkspaceId
    job_id: JobId
    status: JobStatus
    rules: Rules
    schedule_rev: int
    version: int
    timer: Timer
    runs_created: int
    live: int
    waiting: int
    live_until: datetime | None
    live_run_id: RunId | None
    skip_next: str | None
    skip_until: datetime | None
    errors: int
    has_gate: bool
    number: int
    failures_in_a_row: int = 0
    has_dependents: bool = False

    @property
    def load(self) -> JobLoad:
        return JobLoad(self.live, self.waiting)

    def with_load(self, load: JobLoad) -> TimerRow:
        return self._replace(live=load.live, waiting=load.waiting)


def timer_row(
    workspace_id: WorkspaceId,
    job_id: JobId,
    status: str,
    spec: str,
    schedule_rev: int,
    version: int,
    cursor_at: datetime,
    due_at: datetime | None,
    next_at: datetime | None,
    ending: str | None,
    *others: Any,
) -> TimerRow:
    """From the columns of `take_due` and `lock`, in their order."""
    timer = Timer(cursor_at, due_at, next_at, None if ending is None else JobEvent(ending))
    return TimerRow(
        workspace_id, job_id, _STATUSES[status], rules_of(spec), schedule_rev, version, timer, *others
    )
