"""A workspace to do things in."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.given import WORKER, enlist
from tests.services.shop import Shop
from tests.services.staging import Stage


@pytest.fixture
async def workspace(database: Database, owner: psycopg.Connection[Any]) -> WorkspaceId:
    await first_start(database, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    enlist(owner, WORKER)
    return WorkspaceId(found[0])


@pytest.fixture
def stage(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> Stage:
    return Stage(database, clock, workspace, owner)


@pytest.fixture
def shop(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> Shop:
    return Shop(database, clock, workspace, owner)
