"""A finished simulation of two days, for tests that read its history and tests that corrupt it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from foliot.testing.database import Databases
from tools.simulation.run import Run
from tools.simulation.world import Size

SMALL = Size(workspaces=5, days=2, seed=11)


@pytest.fixture(scope="module")
async def finished_run(server: Databases) -> AsyncIterator[Run]:
    with server.fresh() as url, psycopg.connect(url, autocommit=True) as owner:
        run = Run(SMALL, url, owner)
        await run.run()
        yield run
