"""One planned time: an instant of a schedule, with the wall-clock time that identifies it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SkipReason(StrEnum):
    """The reason why a planned time did not run."""

    OVERLAP = "overlap"
    BLACKOUT = "blackout"
    WINDOW = "window"
    FROZEN = "frozen"
    DEPENDENCY_FAILED = "dependency_failed"
    DEPENDENCY_MISSING = "dependency_missing"
    MISFIRE = "misfire"
    PAUSED = "paused"
    OPERATOR = "operator"
    DEADLINE = "deadline"
    HOST_OFFLINE = "host_offline"
    QUOTA = "quota"
    BUDGET = "budget"
    DST_GAP = "dst_gap"
    TYPE_DISABLED = "type_disabled"
    SCHEDULER_ERROR = "scheduler_error"
    SHADOW = "shadow"
    IMPORTED = "imported"  # by the scheduler that the record comes from


class Dst(StrEnum):
    """The effect of a clock change on a planned time."""

    GAP = "gap"  # its wall-clock time does not exist on that day
    FIRST = "first"  # its wall-clock time happens twice; this is the first
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class PlannedTime:
    """`local` and `fold` are the identity (with the schedule's revision); `planned_for` is the instant they name.

    For intervals and one-shots `local` is the UTC instant without its zone. `due_at` is when the timer goes off:
    later than `planned_for` when spread, window or calendar say so. With `skip` it is recorded and does not run.
    """

    planned_for: datetime
    local: datetime
    fold: int
    due_at: datetime
    skip: SkipReason | None = None
    dst: Dst | None = None
