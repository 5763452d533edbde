"""Two nodes that share a database, a clock and a workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from foliot.domain.ids import WorkspaceId
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.race.race_nodes import RaceNodes
from tests.services.builders import WORKER, insert_immortal_worker
from tests.services.service_driver import ServiceDriver


@pytest.fixture
async def nodes(
    database: Database, login_url: str, owner_url: str, clock: ManualClock
) -> AsyncIterator[RaceNodes]:
    async with (
        Database(login_url, clock=clock) as right,
        await AsyncConnection.connect(owner_url) as lock_holder,
        await AsyncConnection.connect(owner_url, autocommit=True) as watcher,
    ):
        yield RaceNodes(database, right, lock_holder, watcher)


@pytest.fixture
async def workspace(workspace: WorkspaceId, owner: psycopg.Connection[Any]) -> WorkspaceId:
    """A workspace with a worker that may claim anything."""
    insert_immortal_worker(owner, WORKER)
    return workspace


@pytest.fixture
async def driver(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> AsyncIterator[ServiceDriver]:
    """Check after each test that the ledger balances."""
    opened = ServiceDriver(database, clock, workspace, owner)
    yield opened
    opened.balance()
