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
async def workspace(database: Database, owner: psycopg.Connection[Any]) -> WorkspaceId:
    await first_start(database, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    insert_immortal_worker(owner, WORKER)
    return WorkspaceId(found[0])


@pytest.fixture
async def driver(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> AsyncIterator[ServiceDriver]:
    """Whatever met in a test, afterwards the ledger must balance."""
    opened = ServiceDriver(database, clock, workspace, owner)
    yield opened
    opened.balance()
