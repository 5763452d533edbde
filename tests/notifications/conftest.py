"""An office: a workspace whose facts become messages to real peers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.notifications.harness import Office
from tests.notifications.mail_server import MailServer, mail_server


@pytest.fixture
async def office(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: psycopg.Connection[Any]
) -> AsyncIterator[Office]:
    made = Office(database, clock, workspace, owner)
    yield made
    await made.close()


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server
