"""Buckets: what passes in any stretch of time is bounded, and a rest is rewarded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.rates import Rate, full, peek, take

RATES = st.builds(Rate, st.floats(0.1, 1_000), st.integers(1, 500))


@given(RATES, st.lists(st.floats(0, 10), max_size=200))
def test_no_more_passes_than_the_burst_and_what_time_brings(rate: Rate, pauses: list[float]) -> None:
    at, bucket, passed = 0.0, full(rate, 0.0), 0
    for pause in pauses:
        at += pause
        bucket, standing = take(bucket, rate, at)
        passed += standing.retry_after == 0
        assert 0 <= standing.remaining <= rate.burst
        assert passed <= rate.burst + at * rate.per_second + 1e-6


@given(RATES)
def test_a_client_that_waits_as_asked_gets_through(rate: Rate) -> None:
    bucket, standing = take(full(rate, 0.0), rate, 0.0)
    while not standing.retry_after:
        bucket, standing = take(bucket, rate, 0.0)
    assert take(bucket, rate, standing.retry_after + 1e-6)[1].retry_after == 0


def test_what_is_refused_costs_nothing_and_looking_neither() -> None:
    rate = Rate(1, 2)
    bucket = full(rate, 0.0)
    for _ in range(2):
        bucket, _ = take(bucket, rate, 0.0)
    for at in (0.1, 0.2, 0.3):
        bucket, standing = take(bucket, rate, at)
        assert standing.retry_after == 1
    assert peek(bucket, rate, 1.0).retry_after == 0
    assert peek(bucket, rate, 1.0) == peek(bucket, rate, 1.0)
    assert (rate.window, peek(bucket, rate, 9.0).remaining) == (2, 2)
