"""Rate limits per key, workspace and address of failed log-ins. Each node counts alone: two nodes allow twice as much.

Why: docs/decisions/702-rates-and-quotas.md
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from foliot.clock import monotonic
from foliot.domain.access import Permission
from foliot.domain.rates import Bucket, Rate, RateState, full, peek, take
from foliot.services.identity.authentication import Caller
from foliot.web.errors import Refused

MOST = 10_000  # buckets kept; the least recently used is dropped: it has refilled
BURST = 2  # seconds of the rate that may come at once
WEBHOOK_CALLS = Rate(1, 60)  # of one incoming webhook: a second, and at once


@dataclass(frozen=True, slots=True)
class _Counted:
    of: tuple[str, object]
    rate: Rate
    said: str


class RateLimits:
    def __init__(self, failures_per_minute: int | None = None) -> None:
        """Limits of keys and workspaces come with the caller. Without a number, failed log-ins are not counted."""
        self._failures = (
            None if not failures_per_minute else Rate(failures_per_minute / 60, failures_per_minute)
        )
        self._buckets: OrderedDict[tuple[str, object], Bucket] = OrderedDict()

    def count(self, caller: Caller) -> RateState | None:
        """Count a request. Refuse it when the bucket of its key or workspace is empty; else return the state of the emptier one."""
        counted = list(_buckets_of(caller))
        at = monotonic()
        for each in counted:  # check both before charging either
            standing = peek(self._bucket(each, at), each.rate, at)
            if standing.retry_after:
                raise _refused(each.said, standing)
        standings = [self._take(each, at) for each in counted]
        return min(standings, key=lambda standing: standing.remaining, default=None)

    def check_failures(self, address: str | None) -> None:
        if self._failures is None:
            return
        at, counted = monotonic(), _Counted(("address", address), self._failures, "")
        standing = peek(self._bucket(counted, at), self._failures, at)
        if standing.retry_after:
            raise _refused("Too many requests with keys that are not valid came from this address.", standing)

    def count_failure(self, address: str | None) -> None:
        if self._failures is not None:
            self._take(_Counted(("address", address), self._failures, ""), monotonic())

    def count_call(self, webhook_id: object) -> None:
        """Count a call of an incoming webhook. Refuse it when there are too many."""
        counted, at = _Counted(("webhook", webhook_id), WEBHOOK_CALLS, ""), monotonic()
        standing = peek(self._bucket(counted, at), counted.rate, at)
        if standing.retry_after:
            raise _refused("This webhook is called more than once a second.", standing)
        self._take(counted, at)

    def _take(self, counted: _Counted, at: float) -> RateState:
        self._buckets[counted.of], standing = take(self._bucket(counted, at), counted.rate, at)
        self._buckets.move_to_end(counted.of)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        return standing

    def _bucket(self, counted: _Counted, at: float) -> Bucket:
        return self._buckets.get(counted.of) or full(counted.rate, at)


def rate_headers(standing: Any) -> list[tuple[bytes, bytes]]:
    """Return the headers for a request that was counted."""
    if not isinstance(standing, RateState):
        return []
    return [(name.lower().encode(), value.encode()) for name, value in _headers(standing).items()]


def _buckets_of(caller: Caller) -> list[_Counted]:
    quotas, found = caller.quotas, []
    if per_second := quotas.key_requests_per_second:
        said = f"This key may send {per_second} requests a second."
        found.append(_Counted(("key", caller.holder.key_id), Rate(per_second, BURST * per_second), said))
    # System keys are exempt: an operator must reach a workspace that is over its limit.
    if (per_second := quotas.requests_per_second) and not caller.holder.may(Permission.SYSTEM):
        said = f"The keys of this workspace may send {per_second} requests a second together."
        found.append(_Counted(("workspace", caller.workspace_id), Rate(per_second, BURST * per_second), said))
    return found


def _headers(standing: RateState) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(standing.limit),
        "RateLimit-Remaining": str(standing.remaining),
        "RateLimit-Reset": str(standing.reset),
    }


def _refused(said: str, standing: RateState) -> Refused:
    headers = {"Retry-After": str(standing.retry_after), **_headers(standing)}
    return Refused(429, said, hint="Wait as Retry-After says, then go on more slowly.", headers=headers)
