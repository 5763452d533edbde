"""The janitor does its tasks in turn, and one that fails keeps no other from its turn."""

from __future__ import annotations

import pytest

from foliot.engine.janitor import BATCH_PAUSE, Janitor

pytestmark = pytest.mark.anyio


async def test_a_chore_that_fails_keeps_no_other_from_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    left = [True, True, False]

    async def broken() -> bool:
        raise ValueError

    async def pruning() -> bool:
        return left.pop(0)

    janitor = Janitor([broken, pruning])
    assert await janitor.step() == BATCH_PAUSE
    assert await janitor.step() == BATCH_PAUSE
    assert await janitor.step() > BATCH_PAUSE
    assert left == []
    assert {record.message for record in caplog.records} == {"janitor_task.failed"}
