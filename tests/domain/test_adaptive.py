"""The polling interval that adapts to the next due job."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.adaptive import polling_interval
from tests.domain.given import DAY, HOUR, MINUTE, at

NOW = at("08:00")


@pytest.mark.parametrize(
    ("waits", "milliseconds"),
    [
        ([DAY, HOUR, 5 * MINUTE], 150_000),
        ([10 * timedelta(seconds=1)], 60_000),
        ([-DAY], 60_000),
        ([30 * DAY], 604_800_000),
        ([], 604_800_000),
    ],
)
def test_half_the_shortest_wait_between_a_minute_and_a_week(
    waits: list[timedelta], milliseconds: int
) -> None:
    assert polling_interval([NOW + wait for wait in waits], NOW) / timedelta(milliseconds=1) == milliseconds
