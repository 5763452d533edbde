"""A workspace for races, and a connection that sees which transaction waits for a lock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.race.waiting_runs.locks import make_harness
from tests.services.workspace_harness import WorkspaceHarness


@pytest.fixture
async def harness(database: Database, clock: ManualClock, owner: psycopg.Connection[Any]) -> WorkspaceHarness:
    return await make_harness(database, clock, owner)


@pytest.fixture
async def watcher(owner_url: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(owner_url) as connection:
        yield connection
        await connection.rollback()
