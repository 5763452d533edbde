"""A loop keeps calling its step: after naps, after wake-ups, after failures; and it stops on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.engine import loop as loops
from foliot.engine.loop import AT_ONCE, Loop
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
AN_HOUR = timedelta(hours=1)


async def running(loop: Loop, holds: Callable[[], bool]) -> None:
    """Run it until the condition holds, then stop it; it must end by itself."""
    task = asyncio.create_task(loop.run())
    await wait_until(holds)
    loop.stop()
    await asyncio.wait_for(task, 20)


async def test_a_step_without_a_nap_is_followed_by_the_next() -> None:
    steps: list[int] = []

    async def step() -> timedelta:
        steps.append(1)
        await asyncio.sleep(0)
        return AT_ONCE if len(steps) < 3 else AN_HOUR

    await running(Loop("x", step), lambda: len(steps) == 3)


async def test_a_wake_up_ends_the_nap_and_stopping_does_too() -> None:
    steps: list[int] = []

    async def step() -> timedelta:
        steps.append(1)
        return AN_HOUR

    loop = Loop("x", step)
    task = asyncio.create_task(loop.run())
    async with asyncio.timeout(20):
        while len(steps) < 5:
            loop.wake()
            await asyncio.sleep(0)
        assert loop.is_running
        loop.stop()
        await task
    assert not loop.is_running


async def test_a_wake_up_during_a_step_is_not_forgotten() -> None:
    steps: list[int] = []

    async def step() -> timedelta:
        steps.append(1)
        if len(steps) == 1:
            loop.wake()
        return AN_HOUR

    loop = Loop("x", step)
    await running(loop, lambda: len(steps) == 2)


@pytest.mark.parametrize("error", [ValueError("poison"), DatabaseUnavailable("The database is away.")])
async def test_a_step_that_fails_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    monkeypatch.setattr(loops, "FIRST_PAUSE", 0.001)
    steps: list[int] = []

    async def step() -> timedelta:
        steps.append(1)
        if len(steps) < 6:
            raise error
        return AN_HOUR

    await running(Loop("x", step), lambda: len(steps) == 6)
    assert [record.message for record in caplog.records] == ["loop.failed"] * 3  # the 1st, 2nd and 4th


async def test_a_step_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_PAUSE", 0.001)
    steps: list[int] = []

    async def step() -> timedelta:
        steps.append(1)
        await asyncio.Event().wait()
        return AN_HOUR

    await running(Loop("x", step, within=0.01), lambda: len(steps) == 2)


async def test_pauses_after_failures_grow_to_a_bound() -> None:
    async def step() -> timedelta:
        raise ValueError

    loop = Loop("x", step)
    pauses = [(await loop._one_step()).total_seconds() for _ in range(30)]
    assert pauses[0] <= 2 * loops.FIRST_PAUSE
    assert all(loops.LONGEST_PAUSE / 2 <= pause <= loops.LONGEST_PAUSE for pause in pauses[10:])
