"""The input of planning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.definition import Rules
from foliot.domain.dependencies import Dependencies
from foliot.domain.freeze import Freeze
from foliot.domain.job import Job, JobLoad, Timer
from foliot.domain.lifecycle import JobStatus


@dataclass(frozen=True, slots=True)
class DueJob:
    """A due job under its timer's lock, with the facts that decide its plan.

    `live_until` is set while the live run waits at a gate. `freezes` are those that overlap the time since the cursor.
    """

    job: Job
    status: JobStatus
    timer: Timer
    runs_created: int = 0  # by the schedule, over the job's whole life
    load: JobLoad = JobLoad()
    live_until: datetime | None = None
    skip_next: bool = False
    skip_until: datetime | None = None  # how far that goes; None: the next planned time alone
    freezes: tuple[Freeze, ...] = ()
    gate: Dependencies | None = None
    is_type_off: bool = False  # in its workspace
    fires_left: int | None = None  # today, by the quotas of its workspace and owner; None: no quota
    is_over_budget: bool = False  # a budget of its workspace is used up
    rules: Rules | None = None  # set where the timer alone allows the fast path
