"""A workspace to do things in."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.builders import WORKER, insert_immortal_worker
from tests.services.service_driver import ServiceDriver
from tests.services.workspace_harness import WorkspaceHarness


@pytest.fixture
async def workspace(database: Database, owner: psycopg.Connection[Any]) -> WorkspaceId:
    await first_start(database, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    insert_immortal_worker(owner, WORKER)
    return WorkspaceId(found[0])


@pytest.fixture
def harness(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> WorkspaceHarness:
    return WorkspaceHarness(database, clock, workspace, owner)


@pytest.fixture
def driver(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> ServiceDriver:
    return ServiceDriver(database, clock, workspace, owner)
