"""Hints wake loops in other processes, are not repeated too often, and are missed without harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from foliot.engine.hints import RETRY_AFTER, HintListener
from foliot.services import hints
from foliot.services.hints import Announcer, Hint
from foliot.storage.tx import Database
from foliot.testing.database import Databases, pool_url
from tests.polling import wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def elsewhere(server: Databases) -> AsyncIterator[str]:
    """Another database of the same server: LISTEN works there, and hears nothing of ours. So does a pooler."""
    with server.fresh() as url:
        yield pool_url(url)


async def test_what_one_announces_wakes_another(database: Database, login_url: str) -> None:
    woken = {hint: asyncio.Event() for hint in Hint}
    listening = HintListener(database, login_url, {hint: event.set for hint, event in woken.items()})
    task = asyncio.create_task(listening.step())
    announcer = Announcer(database)
    async with asyncio.timeout(20):
        for hint in Hint:
            while not woken[hint].is_set():  # it may not be listening yet
                announcer.announce(hint)
                await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    await announcer.close()


async def test_many_announcements_at_once_become_few(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    enough = asyncio.Event()

    async def say(database: Database, word: str) -> None:
        said.append(word)
        if len(said) == 2:
            enough.set()

    monkeypatch.setattr(hints, "say", say)
    announcer = Announcer(database, pause=0.02)
    announcer.announce(Hint.READY)
    await wait_until(lambda: said)
    for _ in range(100):
        announcer.announce(Hint.READY)
    async with asyncio.timeout(20):
        await enough.wait()
        assert announcer._saying is not None
        await announcer._saying
    assert said == ["ready", "ready"]


async def test_a_connection_that_hears_nothing_is_reported_once_and_given_up(
    database: Database, elsewhere: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "PROBE_WITHIN", 0.2)
    listening = HintListener(database, elsewhere, {})
    assert await listening.step() == await listening.step() == RETRY_AFTER > timedelta(minutes=1)
    assert [record.message for record in caplog.records] == ["hints.not_received"]
