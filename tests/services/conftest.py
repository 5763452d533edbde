"""A workspace with a worker, and two drivers for it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.builders import WORKER, insert_immortal_worker
from tests.services.service_driver import ServiceDriver
from tests.services.workspace_harness import WorkspaceHarness


@pytest.fixture
async def workspace(workspace: WorkspaceId, owner: psycopg.Connection[Any]) -> WorkspaceId:
    """A workspace with a worker that may claim anything."""
    insert_immortal_worker(owner, WORKER)
    return workspace


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
