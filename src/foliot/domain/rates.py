"""Token buckets for rate limits. Callers pass seconds of a clock that never goes back."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """A steady rate per second, and a `burst` after a quiet time."""

    per_second: float
    burst: int

    @property
    def window(self) -> int:
        """Seconds until an empty bucket is full."""
        return math.ceil(self.burst / self.per_second)


@dataclass(frozen=True, slots=True)
class Bucket:
    tokens: float
    at: float  # the time of that level


@dataclass(frozen=True, slots=True)
class RateState:
    """The state of a bucket, as response headers report it."""

    limit: int
    remaining: int
    reset: int  # seconds until it is full again
    retry_after: int  # seconds until the next request passes; 0 when this one passed


def full(rate: Rate, at: float) -> Bucket:
    return Bucket(float(rate.burst), at)


def take(bucket: Bucket, rate: Rate, at: float) -> tuple[Bucket, RateState]:
    """Take one token if there is one. A refused request takes none, so repeated attempts do not prolong the wait."""
    tokens = _filled(bucket, rate, at)
    if tokens >= 1:
        left = tokens - 1
        return Bucket(left, at), _standing(rate, left, 0)
    wait = max(1, math.ceil((1 - tokens) / rate.per_second))
    return Bucket(tokens, at), _standing(rate, tokens, wait)


def peek(bucket: Bucket, rate: Rate, at: float) -> RateState:
    tokens = _filled(bucket, rate, at)
    wait = 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / rate.per_second))
    return _standing(rate, tokens, wait)


def _filled(bucket: Bucket, rate: Rate, at: float) -> float:
    return min(rate.burst, bucket.tokens + max(0.0, at - bucket.at) * rate.per_second)


def _standing(rate: Rate, tokens: float, wait: int) -> RateState:
    return RateState(rate.burst, int(tokens), math.ceil((rate.burst - tokens) / rate.per_second), wait)
