"""Waits for locks: one transaction stays open while another waits for its locks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from foliot.domain.ids import WorkspaceId
from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.race.lock_waits import wait_until_blocked
from tests.services.workspace_harness import WorkspaceHarness

T = TypeVar("T")


@asynccontextmanager
async def blocked(other: asyncio.Task[T], watcher: AsyncConnection[Any]) -> AsyncIterator[None]:
    """Enter the block when `other` waits for a lock; the block must release it."""
    await wait_until_blocked(watcher, other=other)
    yield


async def make_harness(
    database: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> WorkspaceHarness:
    await first_start(database, tzdata_version="2026a")
    [(workspace,)] = owner.execute("SELECT id FROM foliot.workspaces").fetchall()
    return WorkspaceHarness(database, clock, WorkspaceId(workspace), owner)
