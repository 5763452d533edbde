"""Deadlines of many attempts on few timers."""

from __future__ import annotations

import pytest

from foliot.clock import monotonic
from foliot.worker.deadlines import SLOTS, Deadlines
from tests.polling import wait_until

pytestmark = pytest.mark.anyio


async def test_whoever_is_still_here_is_struck_when_its_time_has_come_and_not_before() -> None:
    struck: list[tuple[str, float]] = []
    deadlines: Deadlines[str] = Deadlines(lambda one: struck.append((one, monotonic())))
    soon = monotonic() + 0.1
    deadlines.add(soon, "late")
    deadlines.add(soon, "in time")
    deadlines.add(soon + 3_600, "far")
    deadlines.drop(soon, "in time")
    deadlines.add(soon - 1, "past")
    await wait_until(lambda: len(struck) == 2)
    assert [one for one, _ in struck] == ["past", "late"]
    assert struck[1][1] >= soon


async def test_all_of_one_moment_are_struck() -> None:
    struck: list[int] = []
    deadlines: Deadlines[int] = Deadlines(struck.append)
    moment = (int(monotonic() * SLOTS) + 2) / SLOTS
    for one in range(1_000):
        deadlines.add(moment, one)
    await wait_until(lambda: len(struck) == 1_000)
