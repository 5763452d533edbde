"""Decide when to retry a failed attempt, or why not. Time and randomness come in as values.

Why: docs/decisions/202-attempt-outcomes-and-retries.md
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from foliot.domain.policy import LONGEST_WAIT, Backoff, Retry

_MAX_DOUBLINGS = 64  # beyond this every wait is at its limit


@dataclass(frozen=True, slots=True)
class RetryAt:
    at: datetime


class NoRetry(StrEnum):
    """Why there is no further attempt."""

    NONE_WANTED = "none_wanted"
    EXHAUSTED = "exhausted"
    PAST_NEXT = "past_next"
    PERMANENT = "permanent"
    TIMED_OUT = "timed_out"
    CLOSED = "closed"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class GiveUp:
    why: NoRetry

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.why]


_SENTENCES = {
    NoRetry.NONE_WANTED: "This job does not retry.",
    NoRetry.EXHAUSTED: "All retries are used up.",
    NoRetry.PAST_NEXT: "The next retry would not start before the next planned time, which runs instead.",
    NoRetry.PERMANENT: "The failure was reported as permanent, so retrying would not help.",
    NoRetry.TIMED_OUT: "This job does not retry attempts that timed out.",
    NoRetry.CLOSED: "Window or calendars leave no time for the next attempt.",
    NoRetry.ARCHIVED: "The job was archived, so its runs no longer start.",
}


def decide_retry(
    policy: Retry,
    retries_used: int,
    now: datetime,
    jitter: float,
    *,
    interval: timedelta | None = None,
    next_planned_at: datetime | None = None,
    asked: timedelta | None = None,
    least: timedelta | None = None,
) -> RetryAt | GiveUp:
    """Decide when the next attempt starts. `jitter` is random, from 0 to 1; `asked` is a wait that the handler named, `least` a lower
    bound for the wait of the policy.

    `next_planned_at` is the job's next planned time, if known. Unless `past_next`, a retry must start before it, so that the backoff of
    a job that runs every 30 s never silences it.
    """
    if not policy.may_retry:
        return GiveUp(NoRetry.NONE_WANTED)
    if retries_used >= policy.max:
        return GiveUp(NoRetry.EXHAUSTED)
    wait = retry_delay(policy, retries_used + 1, interval) if asked is None else min(asked, LONGEST_WAIT)
    wait = wait if least is None else max(wait, min(least, LONGEST_WAIT))
    try:
        at = now + wait * (1 + policy.jitter * jitter)
    except OverflowError:  # the calendar ends in 9999
        return GiveUp(NoRetry.EXHAUSTED)
    if next_planned_at is not None and not policy.past_next and at >= next_planned_at:
        return GiveUp(NoRetry.PAST_NEXT)
    return RetryAt(at)


def retry_delay(policy: Retry, retry: int, interval: timedelta | None = None) -> timedelta:
    """Return the wait before retry number `retry` (from 1), without jitter. Without an interval, the policy's `base` counts as one."""
    match policy.strategy:
        case Backoff.NONE:
            wait = timedelta(0)
        case Backoff.FIXED:
            wait = policy.base
        case Backoff.LIST:
            wait = policy.delays[min(retry, len(policy.delays)) - 1]
        case Backoff.EXPONENTIAL:
            wait = _doubled(policy.base, retry - 1, LONGEST_WAIT)
        case Backoff.INTERVAL_EXPONENTIAL:
            beat = min(interval or policy.base, LONGEST_WAIT)
            wait = _doubled(beat, retry - 1, min(beat * 10, LONGEST_WAIT))
        case _ as never:
            assert_never(never)
    return wait if policy.cap is None else min(wait, policy.cap)


def _doubled(wait: timedelta, times: int, most: timedelta) -> timedelta:
    """Double in whole microseconds, which Python never overflows, and convert back to a duration."""
    doubled = (wait // _TICK) << min(times, _MAX_DOUBLINGS)
    return min(doubled, most // _TICK) * _TICK


_TICK = timedelta(microseconds=1)
