"""Freezes: hold many jobs for a while. A freeze never edits a job; it decides what happens to planned times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from foliot.domain.errors import Invalid
from foliot.domain.ids import FreezeId


class FreezePolicy(StrEnum):
    """The fate of planned times within a freeze."""

    SKIP = "skip"  # recorded as skipped (frozen), each at its time
    LATEST = "latest"  # held; the newest runs when the freeze is over
    ALL = "all"  # held; all run when the freeze is over, at a rate


class RunningPolicy(StrEnum):
    """The fate of runs that are running when a freeze starts."""

    DRAIN = "drain"  # they finish
    STOP = "stop"  # they are cancelled


@dataclass(frozen=True, slots=True)
class Freeze:
    """A freeze from `start_at` up to `end_at`. Without an end it lasts until a user lifts it."""

    id: FreezeId
    start_at: datetime
    end_at: datetime | None = None
    after: FreezePolicy = FreezePolicy.SKIP
    per_minute: int = 60  # for FreezePolicy.ALL
    running: RunningPolicy = RunningPolicy.DRAIN
    reason: str = ""

    def __post_init__(self) -> None:
        if self.end_at is not None and self.end_at <= self.start_at:
            raise Invalid("A freeze ends after it starts.", pointer="/end_at")
        if not 1 <= self.per_minute <= 60_000:
            raise Invalid("Between 1 and 60,000 runs a minute.", pointer="/per_minute")

    @property
    def pace(self) -> timedelta:
        return timedelta(minutes=1) / self.per_minute

    def holds(self, instant: datetime) -> bool:
        return self.start_at <= instant and (self.end_at is None or instant < self.end_at)


def freeze_at(freezes: Sequence[Freeze], instant: datetime) -> Freeze | None:
    """Return the freeze that decides at `instant`. Skip wins over hold; of several holds the longest wins."""
    in_force = [freeze for freeze in freezes if freeze.holds(instant)]
    return max(in_force, key=_strictness, default=None)


def freeze_holding(freezes: Sequence[Freeze], instant: datetime, asked_at: datetime | None) -> Freeze | None:
    """Return the freeze that holds a run. A run requested during a freeze was requested despite it and passes."""
    if asked_at is not None:
        freezes = [freeze for freeze in freezes if freeze.start_at > asked_at]
    return freeze_at(freezes, instant)


def next_change(freezes: Sequence[Freeze], instant: datetime) -> datetime | None:
    """Return the next instant at which a freeze starts or ends."""
    edges = (edge for freeze in freezes for edge in (freeze.start_at, freeze.end_at))
    return min((edge for edge in edges if edge is not None and edge > instant), default=None)


def _strictness(freeze: Freeze) -> tuple[bool, bool, float]:
    return (
        freeze.after is FreezePolicy.SKIP,
        freeze.end_at is None,
        0.0 if freeze.end_at is None else freeze.end_at.timestamp(),
    )
