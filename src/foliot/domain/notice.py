"""Notices: messages owed to people because something happened to a run or a job. Rules decide who gets them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from foliot.domain.run_plan import Plan, SkippedRange, SkippedTime
from foliot.domain.schedule import SkipReason


class NoticeKind(StrEnum):
    RUN_SUCCEEDED = "run_succeeded"
    RUN_FAILED = "run_failed"
    RETRIES_EXHAUSTED = "retries_exhausted"  # a run that could retry has failed for good
    RECOVERED = "recovered"  # the first success after failures
    RUN_CANCELLED = "run_cancelled"
    RUN_SKIPPED = "run_skipped"
    MISSED = "missed"  # planned times that went by without running
    JOB_PAUSED = "job_paused"
    JOB_AUTO_PAUSED = "job_auto_paused"
    JOB_RESUMED = "job_resumed"
    JOB_COMPLETED = "job_completed"
    JOB_FAILED = "job_failed"
    JOB_EXPIRED = "job_expired"


@dataclass(frozen=True, slots=True)
class Notice:
    kind: NoticeKind
    text: str


def notices_of(plan: Plan) -> tuple[Notice, ...]:
    """What a plan owes: one notice for each record of something that did not run."""
    owed: list[Notice] = []
    for record in plan.records:
        match record:
            case SkippedRange(reason=SkipReason.MISFIRE, count=count):
                many = "More than 10,000" if count is None else f"{count:,}"
                owed.append(Notice(NoticeKind.MISSED, f"{many} planned times were missed."))
            case SkippedTime(reason=SkipReason.MISFIRE):
                owed.append(Notice(NoticeKind.MISSED, "A planned time was missed."))
            case SkippedRange(reason=reason) | SkippedTime(reason=reason):
                owed.append(Notice(NoticeKind.RUN_SKIPPED, f"Skipped: {reason.value}."))
            case _:
                pass
    return tuple(owed)
