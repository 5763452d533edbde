"""The outcomes that an attempt can report, each its own type."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from foliot.domain.run import RunError
from foliot.domain.schedule import SkipReason


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The work has finished; a hand-over to another system is not enough."""


@dataclass(frozen=True, slots=True)
class Failed:
    error: RunError
    permanent: bool = False  # a retry would not help
    not_before: timedelta | None = None  # from now, where the target asked for a pause


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The attempt ran longer than the job's timeout."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker's heartbeats stopped; the work may or may not have finished."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Ended on request: by a person, a freeze that stops, or the next planned time (cancel_running)."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The worker shuts down and returns the run; no retry is used."""


@dataclass(frozen=True, slots=True)
class AskedRetry:
    """The handler asks to be called again after a while; this counts as a retry."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class AskedSkip:
    """The handler, or the worker before it, decided to skip this run."""

    reason: SkipReason
    note: str = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """No worker started it in time: its start deadline or its window has passed, or a calendar has closed."""

    reason: SkipReason = SkipReason.DEADLINE
    note: str = ""


Outcome = Succeeded | Failed | TimedOut | Lost | Cancelled | HandedBack | AskedRetry | AskedSkip | Expired
