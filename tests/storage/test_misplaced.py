"""A server that is a standby, another server, a database that is not Foliot's: recognised, and left as soon as the address leads elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from foliot.domain.errors import DatabaseUnavailable, MisplacedDatabase
from foliot.domain.ids import WorkerId
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import EmbeddedServer
from foliot.embedded.server import start as start_postgres
from foliot.storage.queries import SqlQuery
from foliot.storage.tx import Database, PoolSize, Role
from foliot.storage.workers import workers as stored_workers
from foliot.testing.database import LOGIN

pytestmark = pytest.mark.anyio
PID = SqlQuery("test.pid", b"SELECT pg_backend_pid() AS pid")
READ_ONLY = SqlQuery("test.read_only", b"SET TRANSACTION READ ONLY")
NO_TABLE = SqlQuery("test.no_table", b"SELECT * FROM no_such_table")


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[EmbeddedServer]:
    tmp_path.chmod(0o711)
    config = EmbeddedConfig(tmp_path / "data")
    server = start_postgres(config)
    with psycopg.connect(server.owner_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE foliot_app")
        [(cluster,)] = owner.execute("SELECT current_setting('data_directory')").fetchall()
    server.stop()
    (Path(cluster) / "standby.signal").touch()
    server = start_postgres(config)
    yield server
    server.stop()


async def test_a_standby_is_recognised_and_used_once_it_is_promoted(standby: EmbeddedServer) -> None:
    async with Database(standby.owner_url, size=PoolSize(wait=5.0)) as database:
        with pytest.raises(MisplacedDatabase, match="standby"):
            async with database.tx(Role.APP):
                pass
        with psycopg.connect(standby.owner_url, autocommit=True) as owner:
            owner.execute("SELECT pg_promote()")
        async with database.tx(Role.APP) as tx:
            assert await tx.fetch(PID)


async def test_a_connection_to_a_read_only_database_is_not_used_again(
    database: Database,
) -> None:
    async def write() -> None:
        async with database.tx(Role.ENGINE) as tx:
            pids.append((await tx.fetch(PID))[0]["pid"])
            await tx.execute(READ_ONLY)
            await stored_workers.leave(tx, WorkerId(uuid4()))

    pids: list[int] = []
    with pytest.raises(MisplacedDatabase, match="takes no writes"):
        await write()
    async with database.tx(Role.ENGINE) as tx:
        assert (await tx.fetch(PID))[0]["pid"] != pids[0]


async def test_a_database_without_our_roles_or_tables_is_unavailable_and_no_fault_of_ours(
    login_url: str, owner_url: str
) -> None:
    async with Database(login_url) as database:
        with pytest.raises(MisplacedDatabase, match="tables"):
            async with database.tx(Role.APP) as tx:
                await tx.fetch(NO_TABLE)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS stranger")
        owner.execute("CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
    try:
        async with Database(make_conninfo(login_url, user="stranger", password="stranger")) as database:
            with pytest.raises(MisplacedDatabase, match="not Foliot's database"):
                async with database.tx(Role.APP):
                    pass
    finally:
        with psycopg.connect(owner_url, autocommit=True) as owner:
            owner.execute("DROP ROLE stranger")


async def test_an_address_that_leads_to_another_server_is_refused_until_it_leads_back(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    async with Database(login_url, size=PoolSize(1, 1, wait=1.0)) as database:
        ours, database._server = database._server, 1
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND datname = current_database()",
            [LOGIN.name],
        )
        with pytest.raises(DatabaseUnavailable) as caught:
            async with database.tx(Role.APP):
                pass
        assert isinstance(caught.value, MisplacedDatabase), caught.value
        database._server = ours
        async with database.tx(Role.APP) as tx:
            assert await tx.fetch(PID)
