"""Policies of a job for lateness, overlap, failure and retention. Frozen values; every instance is valid.

Only an edit changes them, so a loader builds each once and shares it between ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from foliot.domain.errors import Invalid

ZERO = timedelta(0)
LONGEST_WAIT = timedelta(days=365)
MOST_RETRIES = 1_000
MOST_CATCH_UP = 1_000
MOST_QUEUED = 100_000


class Backoff(StrEnum):
    """The growth of the waits between attempts."""

    NONE = "none"  # no retries at all
    FIXED = "fixed"  # base, every time
    EXPONENTIAL = "exponential"  # base, 2 x base, 4 x base, ... up to cap
    LIST = "list"  # the delays in order; the last repeats
    INTERVAL_EXPONENTIAL = (
        "interval_exponential"  # the schedule's interval doubled each time, at most ten intervals
    )


@dataclass(frozen=True, slots=True)
class Retry:
    """`max` counts retries after the first attempt. `cap` bounds a wait before jitter lengthens it by up to that fraction."""

    max: int = 3
    strategy: Backoff = Backoff.LIST
    delays: tuple[timedelta, ...] = (timedelta(minutes=5), timedelta(minutes=15), timedelta(minutes=30))
    base: timedelta = timedelta(minutes=1)
    cap: timedelta | None = None
    jitter: float = 0.0
    past_next: bool = False  # may a retry outlast the job's next planned time?

    def __post_init__(self) -> None:
        _within(self.max, 0, MOST_RETRIES, "/retry/max", "retries")
        if self.strategy is Backoff.LIST and not self.delays and self.max:
            raise Invalid(
                "A retry list needs at least one delay.",
                pointer="/retry/delays",
                hint='Such as ["5m", "15m", "30m"].',
            )
        for place, delay in enumerate(self.delays):
            _wait(delay, f"/retry/delays/{place}")
        _wait(self.base, "/retry/base")
        if self.cap is not None:
            _wait(self.cap, "/retry/cap")
        if not 0 <= self.jitter <= 1:
            raise Invalid(
                "Jitter is a fraction from 0 to 1.",
                pointer="/retry/jitter",
                hint="0.1 lengthens waits by up to 10 %.",
            )

    @property
    def may_retry(self) -> bool:
        return self.max > 0 and self.strategy is not Backoff.NONE


class OverlapRule(StrEnum):
    """The fate of a planned time that comes while an earlier run is live."""

    SKIP = "skip"
    QUEUE = "queue"
    QUEUE_ONE = "queue_one"
    CANCEL_RUNNING = "cancel_running"
    CONCURRENT = "concurrent"


@dataclass(frozen=True, slots=True)
class Overlap:
    rule: OverlapRule = OverlapRule.SKIP
    max_queued: int = 100

    def __post_init__(self) -> None:
        _within(self.max_queued, 1, MOST_QUEUED, "/max_queued", "queued runs")


class MisfireRule(StrEnum):
    """The fate of planned times that are found late."""

    LATEST = "latest"  # the newest late one runs
    ALL = "all"  # the newest max_catch_up run, oldest first, behind live work
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Misfire:
    rule: MisfireRule = MisfireRule.LATEST
    grace: timedelta = timedelta(seconds=60)  # late is older than this; within it a time simply runs
    max_catch_up: int = 10

    def __post_init__(self) -> None:
        if not ZERO <= self.grace <= LONGEST_WAIT:
            raise Invalid("Grace must be between 0 and one year.", pointer="/misfire/grace")
        _within(self.max_catch_up, 1, MOST_CATCH_UP, "/misfire/max_catch_up", "catch-up runs")


class BreakerAction(StrEnum):
    PAUSE = "pause"
    FAIL = "fail"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Breaker:
    """After so many runs in a row that ended failed, timed_out or interrupted, the job itself is stopped."""

    after: int = 5
    action: BreakerAction = BreakerAction.PAUSE

    def __post_init__(self) -> None:
        _within(self.after, 1, 1_000_000, "/breaker/after", "failures in a row")


class OnLost(StrEnum):
    """The fate of a run whose worker falls silent: repeat (at least once) or end (at most once)."""

    REPEAT = "repeat"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Limits:
    """Timeout of an attempt, start deadline of a run, and what to do when its worker is lost."""

    timeout: timedelta = timedelta(minutes=10)
    start_deadline: timedelta | None = None
    on_lost: OnLost = OnLost.REPEAT

    def __post_init__(self) -> None:
        _some_time(self.timeout, "/timeout", "A timeout")
        if self.start_deadline is not None:
            _some_time(self.start_deadline, "/start_deadline", "A start deadline")


class RetentionMode(StrEnum):
    ALL = "all"  # a record goes once it is beyond every limit
    ANY = "any"  # a record goes once it is beyond one limit


@dataclass(frozen=True, slots=True)
class Retention:
    keep: timedelta = timedelta(days=90)
    keep_last: int = 100
    mode: RetentionMode = RetentionMode.ALL

    def __post_init__(self) -> None:
        _some_time(self.keep, "/retention/keep", "The time to keep history", longest=timedelta(days=36_500))
        _within(self.keep_last, 1, 1_000_000, "/retention/keep_last", "kept runs")


@dataclass(frozen=True, slots=True)
class NotifyPolicy:
    """The kinds of channels that hear of a job's failures, and who instead of the recipients of these channels."""

    email: bool = True
    slack: bool = False
    whatsapp: bool = False
    recipients: tuple[str, ...] = ()


def _within(value: int, least: int, most: int, pointer: str, what: str) -> None:
    if not least <= value <= most:
        raise Invalid(f"{value} {what} is out of range: from {least} to {most:,}.", pointer=pointer)


def _wait(value: timedelta, pointer: str) -> None:
    if not ZERO <= value <= LONGEST_WAIT:
        raise Invalid("A wait must be between 0 and one year.", pointer=pointer)


def _some_time(value: timedelta, pointer: str, what: str, longest: timedelta = LONGEST_WAIT) -> None:
    if not ZERO < value <= longest:
        raise Invalid(f"{what} must be longer than 0 and at most {longest.days:,} days.", pointer=pointer)
