"""Through PgBouncer in transaction mode, where every transaction may land on another session."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foliot.domain.ids import WorkspaceId
from foliot.services import hints, setup
from foliot.storage.patience import Patience
from foliot.storage.queries import Query
from foliot.storage.server import inspect
from foliot.storage.tx import Database, PoolSize, Role
from foliot.testing.database import as_unprivileged, unprivileged_user

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture
def pooled_url(login_url: str) -> Iterator[str]:
    """Two server sessions for any number of clients."""
    server = conninfo_to_dict(login_url)
    with tempfile.TemporaryDirectory(prefix="foliot-bouncer-") as folder:
        os.chown(folder, *unprivileged_user())
        target = " ".join(
            f"{name}={server[name]}" for name in ("host", "port", "dbname", "user") if name in server
        )
        Path(folder, "users").write_text(f'"{server["user"]}" "{server["password"]}"\n')
        Path(folder, "ini").write_text(
            f"[databases]\npooled = {target}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\n"
            f"auth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\ndefault_pool_size = 2\n"
        )
        bouncer = subprocess.Popen(
            as_unprivileged(Path(str(PGBOUNCER)), "-q", f"{folder}/ini"), stderr=subprocess.DEVNULL
        )
        url = make_conninfo(host=folder, port=6432, dbname="pooled", user=server["user"])
        try:
            waiting = Patience(20)
            while not Path(folder, ".s.PGSQL.6432").exists():
                assert bouncer.poll() is None
                assert waiting.again()
            yield url
        finally:
            bouncer.send_signal(signal.SIGTERM)
            bouncer.wait(timeout=10)


async def test_workspaces_stay_apart_while_sessions_are_shared(
    pooled_url: str, populated: Mapping[str, WorkspaceId]
) -> None:
    ask = Query("test", b"SELECT name, pg_backend_pid() AS pid, pg_sleep(0.002) FROM principals")
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
        first = await setup.first_start(database, tzdata_version="2026.6")
        assert first is not None
        for _ in range(10):  # more often than the driver's habit of preparing a statement
            assert await setup.key_lookup(database, first.secret)
        assert await setup.first_start(database, tzdata_version="2026.6") is None


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
