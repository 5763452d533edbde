"""When the next attempt starts, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.policy import LONGEST_WAIT, MOST_RETRIES, Backoff, Retry
from foliot.domain.settlement.retry import GiveUp, NoRetry, RetryAt, decide_retry
from tests.domain.builders import at

NOW = at("08:00")


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


def waits(policy: Retry, interval: timedelta | None = None) -> list[float]:
    answers = [decide_retry(policy, used, NOW, 0.0, interval=interval) for used in range(policy.max)]
    assert decide_retry(policy, policy.max, NOW, 0.0, interval=interval) == GiveUp(NoRetry.EXHAUSTED)
    return [(answer.at - NOW).total_seconds() for answer in answers if isinstance(answer, RetryAt)]


@pytest.mark.requirement("S0-8", "S3-13")
@pytest.mark.parametrize(
    ("policy", "interval", "expected"),
    [
        (Retry(), None, [300, 900, 1800]),
        (Retry(2, Backoff.EXPONENTIAL, base=seconds(1)), None, [1, 2]),
        (Retry(5, Backoff.EXPONENTIAL, base=seconds(2), cap=seconds(10)), None, [2, 4, 8, 10, 10]),
        (Retry(3, Backoff.FIXED, base=seconds(7)), None, [7, 7, 7]),
        (Retry(5, Backoff.LIST, (seconds(1), seconds(5))), None, [1, 5, 5, 5, 5]),
        (Retry(3, Backoff.INTERVAL_EXPONENTIAL), seconds(60), [60, 120, 240]),
        (Retry(6, Backoff.INTERVAL_EXPONENTIAL), seconds(60), [60, 120, 240, 480, 600, 600]),
        (Retry(6, Backoff.INTERVAL_EXPONENTIAL), seconds(300), [300, 600, 1200, 2400, 3000, 3000]),
        (Retry(2, Backoff.INTERVAL_EXPONENTIAL, base=seconds(30)), None, [30, 60]),
        (Retry(2, Backoff.EXPONENTIAL, base=seconds(0)), None, [0, 0]),
    ],
)
def test_each_strategy_waits_as_its_table_says(
    policy: Retry, interval: timedelta | None, expected: list[float]
) -> None:
    assert waits(policy, interval) == expected


@pytest.mark.parametrize("policy", [Retry(0), Retry(3, Backoff.NONE)])
def test_a_job_that_does_not_retry_gives_up_at_once(policy: Retry) -> None:
    assert decide_retry(policy, 0, NOW, 0.0) == GiveUp(NoRetry.NONE_WANTED)


def test_jitter_lengthens_a_wait_by_up_to_its_fraction() -> None:
    policy = Retry(1, Backoff.FIXED, base=seconds(100), cap=seconds(100), jitter=0.2)
    assert decide_retry(policy, 0, NOW, 0.0) == RetryAt(NOW + seconds(100))
    assert decide_retry(policy, 0, NOW, 0.5) == RetryAt(NOW + seconds(110))
    assert decide_retry(policy, 0, NOW, 1.0) == RetryAt(NOW + seconds(120))


@pytest.mark.parametrize(
    ("past_next", "next_in", "answer"),
    [
        (False, 301, RetryAt(NOW + seconds(300))),
        (False, 300, GiveUp(NoRetry.PAST_NEXT)),
        (False, 30, GiveUp(NoRetry.PAST_NEXT)),
        (True, 30, RetryAt(NOW + seconds(300))),
        (False, None, RetryAt(NOW + seconds(300))),
    ],
)
def test_a_retry_that_would_not_start_before_the_next_planned_time_is_not_made(
    past_next: bool, next_in: float | None, answer: RetryAt | GiveUp
) -> None:
    next_at = None if next_in is None else NOW + seconds(next_in)
    assert decide_retry(Retry(past_next=past_next), 0, NOW, 0.0, next_planned_at=next_at) == answer


def test_a_handler_may_name_the_wait_but_not_the_number_of_retries() -> None:
    assert decide_retry(Retry(1), 0, NOW, 0.0, asked=seconds(3)) == RetryAt(NOW + seconds(3))
    assert decide_retry(Retry(1), 1, NOW, 0.0, asked=seconds(3)) == GiveUp(NoRetry.EXHAUSTED)


def test_a_target_may_lengthen_the_wait_and_never_shorten_it() -> None:
    policy = Retry(1, Backoff.FIXED, base=seconds(10))
    assert decide_retry(policy, 0, NOW, 0.0, least=seconds(3)) == RetryAt(NOW + seconds(10))
    assert decide_retry(policy, 0, NOW, 0.0, least=seconds(30)) == RetryAt(NOW + seconds(30))
    tomorrow = decide_retry(
        policy, 0, NOW, 0.0, least=timedelta(days=1), next_planned_at=NOW + timedelta(hours=1)
    )
    assert tomorrow == GiveUp(NoRetry.PAST_NEXT)


def test_every_reason_to_give_up_has_a_sentence() -> None:
    assert all(GiveUp(why).sentence.endswith(".") for why in NoRetry)


@given(
    st.builds(
        Retry,
        st.integers(1, MOST_RETRIES),
        st.sampled_from(Backoff),
        base=st.timedeltas(timedelta(0), LONGEST_WAIT),
        cap=st.none() | st.timedeltas(timedelta(0), LONGEST_WAIT),
        jitter=st.floats(0, 1),
    ),
    st.integers(0, 10**9),
    st.datetimes(timezones=st.just(UTC)),
    st.floats(0, 1),
    st.none() | st.timedeltas(timedelta(seconds=1), timedelta(days=100_000)),
)
def test_no_input_overflows_and_a_retry_is_never_in_the_past(
    policy: Retry, used: int, now: datetime, jitter: float, interval: timedelta | None
) -> None:
    answer = decide_retry(policy, used, now, jitter, interval=interval)
    assert isinstance(answer, GiveUp) or (answer.at >= now and used < policy.max)
