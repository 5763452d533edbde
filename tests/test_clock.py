"""The clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from foliot.clock import SystemClock, monotonic
from foliot.testing.clock import ManualClock


def test_the_system_clock_speaks_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


def test_monotonic_time_does_not_go_back() -> None:
    assert monotonic() <= monotonic()


def test_a_manual_clock_moves_only_when_the_test_moves_it() -> None:
    clock = ManualClock(datetime(2027, 1, 1, tzinfo=timezone(timedelta(hours=-3))))
    assert clock.now() == clock.now() == datetime(2027, 1, 1, 3, tzinfo=UTC)
    assert clock.now().tzinfo is UTC
    assert clock.advance(timedelta(minutes=5)) == clock.now() == datetime(2027, 1, 1, 3, 5, tzinfo=UTC)


def test_a_manual_clock_refuses_a_time_without_a_zone() -> None:
    with pytest.raises(ValueError, match="aware"):
        ManualClock(datetime(2027, 1, 1))
