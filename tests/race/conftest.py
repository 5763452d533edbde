"""Two nodes with a pool each, one clock for both, and a workspace to meet in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from foliot.domain.ids import WorkspaceId
from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.race.hands import Hands
from tests.services.given import WORKER, enlist
from tests.services.shop import Shop


@pytest.fixture
async def hands(
    database: Database, login_url: str, owner_url: str, clock: ManualClock
) -> AsyncIterator[Hands]:
    async with (
        Database(login_url, clock=clock) as right,
        await AsyncConnection.connect(owner_url) as keeper,
        await AsyncConnection.connect(owner_url, autocommit=True) as watcher,
    ):
        yield Hands(database, right, keeper, watcher)


@pytest.fixture
async def workspace(database: Database, owner: psycopg.Connection[Any]) -> WorkspaceId:
    await first_start(database, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    enlist(owner, WORKER)
    return WorkspaceId(found[0])


@pytest.fixture
async def shop(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> AsyncIterator[Shop]:
    """Whatever met in a test, afterwards the ledger must balance."""
    opened = Shop(database, clock, workspace, owner)
    yield opened
    opened.balance()
