"""A workspace to schedule things in."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database


@pytest.fixture
async def workspace(database: Database, owner: psycopg.Connection[Any]) -> WorkspaceId:
    await first_start(database, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    return WorkspaceId(found[0])
