"""Through PgBouncer in transaction mode, where every transaction may land on another session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.services import hints
from foliot.services.identity import installation
from foliot.services.identity.authentication import Authenticator
from foliot.storage.queries import SqlQuery
from foliot.storage.server import inspect
from foliot.storage.tx import Database, PoolSize, Role
from tests.pgbouncer import PGBOUNCER, PgBouncer

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture
def pooled_url(login_url: str) -> Iterator[str]:
    """Two server sessions for any number of clients."""
    with PgBouncer(login_url) as bouncer:
        yield bouncer.url


async def test_workspaces_stay_apart_while_sessions_are_shared(
    pooled_url: str, populated: Mapping[str, WorkspaceId]
) -> None:
    ask = SqlQuery("test", b"SELECT name, pg_backend_pid() AS pid, pg_sleep(0.002) FROM principals")
    async with Database(pooled_url, size=PoolSize(least=8, most=8)) as database:

        async def one(slug: str | None) -> tuple[list[str], set[int]]:
            async with database.tx(Role.APP, populated[slug] if slug else None) as tx:
                rows = await tx.fetch(ask)
                rows += await tx.fetch(ask)
            return [row["name"] for row in rows], {row["pid"] for row in rows}

        asked = ["acme", "globex", "outsider", None] * 25
        answers = await asyncio.gather(*(one(slug) for slug in asked))
    assert [names for names, _ in answers] == [
        [slug] * 2 if slug in ("acme", "globex") else [] for slug in asked
    ]
    assert len(set.union(*(pids for _, pids in answers))) <= 2, "eight clients on two sessions"


async def test_setup_and_keys_work_through_the_pooler(pooled_url: str) -> None:
    async with Database(pooled_url) as database:
        first = await installation.first_start(database, tzdata_version="2026.6")
        assert first is not None
        for _ in range(10):  # more often than the driver's habit of preparing a statement
            assert await Authenticator(database).enter(first.secret, None)
        assert await installation.first_start(database, tzdata_version="2026.6") is None


async def test_nothing_stays_on_the_shared_session(
    pooled_url: str, populated: Mapping[str, WorkspaceId]
) -> None:
    async with Database(pooled_url) as database, database.tx(Role.APP, populated["acme"], system=True):
        pass
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(4):
            row = connection.execute(
                "SELECT current_setting('role'), current_setting('foliot.workspace', true), current_setting('foliot.system', true)"
            ).fetchone()
            assert row in {("none", "", ""), ("none", None, None)}


def test_the_server_can_be_inspected_through_the_pooler(pooled_url: str) -> None:
    assert not inspect(pooled_url).one_login


async def test_listening_through_it_hears_nothing_and_finds_that_out(
    pooled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "PROBE_WITHIN", 0.5)
    async with Database(pooled_url) as database:
        await hints.listen(
            database, pooled_url, lambda word: None
        )  # returns, where a direct line would go on
