"""Engines with a bug in them do not survive the simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from foliot.storage.queries import SqlQuery, sql
from foliot.testing.database import Databases
from tools.simulation.run import simulate
from tools.simulation.world import Size

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(900)]
WORLD = Size(workspaces=5, days=2, seed=7)


def spoil(monkeypatch: pytest.MonkeyPatch, file: Any, name: str, right: bytes, wrong: bytes) -> None:
    query: SqlQuery = getattr(file, name)
    assert right in query.text
    monkeypatch.setitem(file._queries, name, replace(query, text=query.text.replace(right, wrong)))


async def test_an_engine_that_forgets_its_fences_is_caught(
    server: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = b"leases.run_id = held.run_id AND leases.fence = held.fence AND leases.worker_id = held.worker_id"
    spoil(monkeypatch, sql.leases, "lock", held, b"leases.run_id = held.run_id")
    with server.fresh() as url, pytest.raises(AssertionError, match="I6"):
        await simulate(WORLD, url)


async def test_an_engine_that_fires_a_minute_early_is_caught(
    server: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(
        monkeypatch,
        sql.run_queue,
        "claim",
        b"available_at <= %(now)s",
        b"available_at <= %(now)s + interval '10 minutes'",
    )
    with server.fresh() as url, pytest.raises(AssertionError, match="I3"):
        await simulate(WORLD, url)


async def test_an_engine_that_loses_count_of_what_is_live_is_caught(
    server: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(
        monkeypatch,
        sql.timers,
        "settle",
        b"waiting = timers.waiting + new.waiting",
        b"waiting = timers.waiting",
    )
    with server.fresh() as url, pytest.raises(AssertionError, match="timers count"):
        await simulate(WORLD, url)
