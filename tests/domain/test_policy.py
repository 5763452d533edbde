"""Policies: the defaults that the design promises, and values that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from foliot.domain.errors import Invalid
from foliot.domain.policy import (
    Backoff,
    Breaker,
    BreakerAction,
    Limits,
    Misfire,
    MisfireRule,
    OnLost,
    Overlap,
    OverlapRule,
    Retention,
    RetentionMode,
    Retry,
)
from tests.domain.builders import DAY, MINUTE, at
from tests.domain.retention_model import may_prune

NOW = at("2027-06-01 00:00")


@pytest.mark.requirement("S1-FR-007", "S4-9")
def test_the_defaults_are_those_of_the_design() -> None:
    assert Retry() == Retry(3, Backoff.LIST, (5 * MINUTE, 15 * MINUTE, 30 * MINUTE), past_next=False)
    assert Overlap() == Overlap(OverlapRule.SKIP, 100)
    assert Misfire() == Misfire(MisfireRule.LATEST, timedelta(seconds=60), 10)
    assert Breaker() == Breaker(5, BreakerAction.PAUSE)
    assert Limits() == Limits(timedelta(seconds=600), None, OnLost.REPEAT)
    assert Retention() == Retention(90 * DAY, 100, RetentionMode.ALL)


@pytest.mark.parametrize(
    ("make", "pointer"),
    [
        (lambda: Retry(-1), "/retry/max"),
        (lambda: Retry(10**9), "/retry/max"),
        (lambda: Retry(3, Backoff.LIST, ()), "/retry/delays"),
        (lambda: Retry(delays=(MINUTE, -MINUTE)), "/retry/delays/1"),
        (lambda: Retry(base=-MINUTE), "/retry/base"),
        (lambda: Retry(cap=1000 * DAY), "/retry/cap"),
        (lambda: Retry(jitter=1.5), "/retry/jitter"),
        (lambda: Retry(jitter=float("nan")), "/retry/jitter"),
        (lambda: Overlap(max_queued=0), "/max_queued"),
        (lambda: Misfire(grace=-MINUTE), "/misfire/grace"),
        (lambda: Misfire(max_catch_up=0), "/misfire/max_catch_up"),
        (lambda: Breaker(0), "/breaker/after"),
        (lambda: Limits(timeout=timedelta(0)), "/timeout"),
        (lambda: Limits(start_deadline=-MINUTE), "/start_deadline"),
        (lambda: Retention(keep_last=0), "/retention/keep_last"),
        (lambda: Retention(keep=-DAY), "/retention/keep"),
    ],
)
def test_a_policy_that_cannot_be_points_at_its_field(make: Callable[[], object], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        make()
    assert refused.value.pointer == pointer


@pytest.mark.parametrize(
    ("mode", "age", "rank", "goes"),
    [
        (RetentionMode.ALL, 91, 100, False),
        (RetentionMode.ALL, 89, 101, False),
        (RetentionMode.ALL, 91, 101, True),
        (RetentionMode.ANY, 89, 101, True),
        (RetentionMode.ANY, 91, 1, True),
        (RetentionMode.ANY, 1, 100, False),
    ],
)
def test_history_goes_when_it_is_beyond_all_limits_or_any(
    mode: RetentionMode, age: int, rank: int, goes: bool
) -> None:
    assert may_prune(Retention(mode=mode), NOW - age * DAY, rank, NOW) is goes
