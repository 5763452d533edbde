"""Fixtures that all tests share. A test that uses a database has it for itself and may do anything to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import Phase, settings
from psycopg import AsyncConnection

from foliot.domain.ids import WorkspaceId
from foliot.services.identity.installation import first_start
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.database import Databases, databases, pool_url
from tests.database_pool import DatabasePool, PooledDatabase, make_login_cheap
from tests.examples import examples
from tests.fork_server import end_server
from tests.temporary import temporary_folder

LONGEST = ("test_simulation.py", "test_openapi_walk.py")
# In CI the examples are the same each time: a discovery that has nothing to do with a change does not stop it.
# A planted bug (`./dev mutate`) is noticed by the first example that fails; no smaller one is looked for.
PHASES = [each for each in Phase if each is not Phase.shrink or "PLANTED_BUG" not in os.environ]
settings.register_profile("foliot", examples(), derandomize="CI" in os.environ, phases=PHASES)
settings.load_profile("foliot")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that none is left for the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_sessionfinish() -> None:
    end_server()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Unlike pytest's own, reachable for the user that PostgreSQL runs as, and gone after the test."""
    with temporary_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server() -> Iterator[Databases]:
    """A PostgreSQL with a migrated template, for all tests of this process."""
    with databases() as found:
        if "FOLIOT_TEST_DATABASE_URL" not in os.environ:  # on a server of others, the role may be in use
            make_login_cheap(found.admin_url)
        yield found


@pytest.fixture(scope="session")
def database_pool(server: Databases) -> Iterator[DatabasePool]:
    with closing(DatabasePool(server)) as pool:
        yield pool


@pytest.fixture
def pooled_database(database_pool: DatabasePool) -> Iterator[PooledDatabase]:
    with database_pool.lend() as lent:
        yield lent


@pytest.fixture
def owner_url(pooled_database: PooledDatabase) -> str:
    """A migrated database, as its owner."""
    return pooled_database.url


@pytest.fixture
def empty_url(server: Databases) -> Iterator[str]:
    """A database without Foliot in it, as its owner."""
    with server.fresh(migrated=False) as url:
        yield url


@pytest.fixture
def login_url(owner_url: str) -> str:
    """The migrated database, as the login of the pool."""
    return pool_url(owner_url)


@pytest.fixture
def owner(pooled_database: PooledDatabase) -> psycopg.Connection[Any]:
    """A superuser's connection: tests read all rows with it and break things."""
    return pooled_database.owner


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def database(login_url: str, clock: ManualClock) -> AsyncIterator[Database]:
    async with Database(login_url, clock=clock) as opened:
        yield opened


@pytest.fixture
async def workspace(database: Database, owner: psycopg.Connection[Any]) -> WorkspaceId:
    """The workspace that the first start creates."""
    await first_start(database, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    return WorkspaceId(found[0])


@pytest.fixture
async def two_connections(owner_url: str) -> AsyncIterator[tuple[AsyncConnection[Any], AsyncConnection[Any]]]:
    """Two connections for a race; each begins a transaction with its first statement."""
    async with (
        await AsyncConnection.connect(owner_url) as left,
        await AsyncConnection.connect(owner_url) as right,
    ):
        yield left, right
        await left.rollback()
        await right.rollback()
