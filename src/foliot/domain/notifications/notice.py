"""Notices: facts that people may want to hear of, as the transactions that make them true write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from foliot.domain.ids import JobId, RunId
from foliot.domain.policy import NotifyPolicy
from foliot.domain.run import RunError


class NoticeEvent(StrEnum):
    """The events that a rule may name."""

    RUN_FAILED = "run_failed"  # for good: no retry is left
    RETRIES_EXHAUSTED = "retries_exhausted"  # a run_failed after at least one retry
    RUN_SUCCEEDED = "run_succeeded"
    RUN_SKIPPED = "run_skipped"
    MISSED = "missed"
    LATE = "late"  # a run that workers could take has not started for a while
    SLOW = "slow"  # a run takes far longer than its job usually does
    STUCK = "stuck"  # a run waits for hours, or has stopped reporting progress
    NO_WORKER = "no_worker"
    JOB_PAUSED = "job_paused"
    JOB_AUTO_PAUSED = "job_auto_paused"
    JOB_RESUMED = "job_resumed"
    JOB_CHANGED = "job_changed"
    RECOVERED = "recovered"
    EXPIRING = "expiring"  # a job's last planned time or a key's end is near
    ZONE_DATA_CHANGED = "zone_data_changed"  # new zone data moved the next planned time
    CHANNEL_DISABLED = "channel_disabled"
    JOB_ARCHIVED = "job_archived"  # closes the job's incident; rules do not name it
    BUDGET_WARNING = "budget_warning"  # a share of a budget is used
    BUDGET_EXCEEDED = "budget_exceeded"  # a budget is used up
    EVENT = "event"  # of the event stream; webhook channels name its kinds, rules do not


# Events that open an incident or count in an open one.
TROUBLES = frozenset(
    {
        NoticeEvent.RUN_FAILED,
        NoticeEvent.MISSED,
        NoticeEvent.NO_WORKER,
        NoticeEvent.LATE,
        NoticeEvent.SLOW,
        NoticeEvent.STUCK,
    }
)


@dataclass(frozen=True, slots=True)
class Notice:
    """One fact. `facts` holds what its event needs: an error, a reason, counts."""

    seq: int
    event: NoticeEvent
    at: datetime
    job_id: JobId | None = None
    run_id: RunId | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> RunError | None:
        found = self.facts.get("error")
        return RunError(str(found["code"]), str(found["message"])) if found else None

    @property
    def subject(self) -> str:
        """Return what an incident is about: the job, unless the facts name another subject."""
        named = self.facts.get("subject")
        if named is not None:
            return str(named)
        return "workspace" if self.job_id is None else f"job:{self.job_id}"

    @property
    def names(self) -> frozenset[NoticeEvent]:
        """Return the events under which rules know this fact."""
        if self.event is NoticeEvent.RUN_FAILED and self.facts.get("retries", 0) > 0:
            return frozenset({self.event, NoticeEvent.RETRIES_EXHAUSTED})
        if self.event is NoticeEvent.JOB_AUTO_PAUSED and "budget" in self.facts:
            return frozenset({self.event, NoticeEvent.BUDGET_EXCEEDED})
        return frozenset({self.event})


def fingerprint(event: NoticeEvent, error: RunError | None) -> str:
    """Return the same text for the same error: ids and numbers in its message do not count."""
    return event.value if error is None else error.fingerprint


@dataclass(frozen=True, slots=True)
class JobNames:
    """The fields of a job that rules and messages need."""

    id: JobId
    name: str
    queue: str
    tags: tuple[str, ...] = ()
    timezone: str = "UTC"
    owner: str | None = None
    next_at: datetime | None = None
    last_success_at: datetime | None = None
    notify: NotifyPolicy | None = None
    is_archived: bool = False
    is_stopped_by_person: bool = False  # paused or disabled; not by a breaker or a budget


@dataclass(frozen=True, slots=True)
class RunNames:
    """The fields of a run that messages need."""

    id: UUID
    number: int
    planned_for: datetime
    attempt_count: int
    started_at: datetime | None
    finished_at: datetime | None
