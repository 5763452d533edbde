"""One transaction: one round trip to open, one instant, one role; commits once or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import anyio
import psycopg
import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import WorkspaceId
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.tx import Database, PoolSize, Role, SwallowedError
from foliot.testing.clock import ManualClock
from tests.polling import wait_until

Ids = Mapping[str, WorkspaceId]
ADD = SqlQuery(
    "test.add", b"INSERT INTO workspaces (id, slug, name, created_at) VALUES (%(id)s, %(slug)s, 'x', %(now)s)"
)
COUNT = SqlQuery("test.count", b"SELECT count(*) AS n FROM workspaces")


def q(text: str) -> SqlQuery:
    return SqlQuery("test", text.encode())


async def count(database: Database) -> int:
    async with database.tx(Role.APP, system=True) as tx:
        row = await tx.fetch_one(COUNT)
    assert row is not None
    return int(row["n"])


async def test_a_transaction_commits_at_its_end_and_rolls_back_on_an_error(database: Database) -> None:
    async with database.tx(Role.APP, system=True) as tx:
        assert await tx.execute(ADD, {"id": uuid4(), "slug": "kept", "now": tx.now}) == 1
    with pytest.raises(KeyError):  # noqa: PT012  # the claim is about the whole transaction
        async with database.tx(Role.APP, system=True) as tx:
            await tx.execute(ADD, {"id": uuid4(), "slug": "dropped", "now": tx.now})
            raise KeyError
    async with database.tx(Role.APP, system=True) as tx:
        assert [row["slug"] for row in await tx.fetch(q("SELECT slug FROM workspaces"))] == ["kept"]


async def test_the_instant_is_the_databases_and_the_same_for_every_query(login_url: str) -> None:
    async with Database(login_url) as database, database.tx(Role.APP, system=True) as tx:
        first, workspace = tx.now, uuid4()
        await tx.execute(ADD, {"id": workspace, "slug": "one", "now": tx.now})
        row = await tx.fetch_one(q("SELECT created_at, clock_timestamp() AS later FROM workspaces"))
        assert row is not None
        assert row["created_at"] == tx.now == first < row["later"] < first + timedelta(minutes=1)
        assert tx.now.tzinfo is UTC


async def test_a_manual_clock_names_the_instant(database: Database, clock: ManualClock) -> None:
    clock.set(datetime(2031, 5, 6, tzinfo=UTC))
    async with database.tx(Role.APP) as tx:
        clock.advance(timedelta(hours=1))
        assert tx.now == datetime(2031, 5, 6, tzinfo=UTC)
    async with database.tx(Role.APP) as tx:
        assert tx.now == datetime(2031, 5, 6, 1, tzinfo=UTC)


async def test_opening_takes_one_round_trip(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    execute = psycopg.AsyncConnection.execute

    async def watched(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(query)
        return await execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", watched)
    async with database.tx(Role.APP) as tx:
        await tx.fetch(q("SELECT 1"))
    assert len(sent) == 3  # open, the query, commit
    assert sent[0].startswith(b"BEGIN")


async def test_a_transaction_is_read_committed_in_its_own_schema_with_bounded_patience(
    database: Database,
) -> None:
    wanted = {
        "transaction_isolation": "read committed",
        "search_path": "foliot, pg_temp",
        "statement_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",
        "synchronous_commit": "on",
        "TimeZone": "UTC",
        "role": "foliot_app",
    }
    async with database.tx(Role.APP) as tx:
        for name, value in wanted.items():
            assert await tx.fetch_one(q(f"SHOW {name}")) == {
                name if name == "TimeZone" else name.lower(): value
            }


async def test_only_a_relaxed_transaction_does_not_wait_for_the_disk(login_url: str) -> None:
    async with Database(login_url, size=PoolSize(least=1, most=1)) as database:
        async with database.tx(Role.ENGINE, relaxed=True) as tx:
            assert await tx.fetch_one(q("SHOW synchronous_commit")) == {"synchronous_commit": "off"}
        async with database.tx(Role.ENGINE) as tx:
            assert await tx.fetch_one(q("SHOW synchronous_commit")) == {"synchronous_commit": "on"}


async def test_a_forgotten_role_is_an_error(login_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(login_url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for schema foliot"):
            await connection.execute("SELECT * FROM foliot.workspaces")


async def test_a_caught_error_does_not_pass_for_a_commit(database: Database) -> None:
    with pytest.raises(SwallowedError):  # noqa: PT012  # the claim is about the whole transaction
        async with database.tx(Role.APP, system=True) as tx:
            await tx.execute(ADD, {"id": uuid4(), "slug": "lost", "now": tx.now})
            with pytest.raises(psycopg.errors.DivisionByZero):
                await tx.fetch(q("SELECT 1 / 0"))
    assert await count(database) == 0


async def test_a_transaction_cannot_be_used_after_its_end(database: Database) -> None:
    async with database.tx(Role.APP) as tx:
        pass
    with pytest.raises(RuntimeError, match="this transaction is over"):
        await tx.fetch(sql.installation.get)


async def test_a_workspace_that_is_not_an_id_never_reaches_the_database(database: Database) -> None:
    with pytest.raises(AttributeError):
        async with database.tx(Role.APP, "'); DROP SCHEMA foliot CASCADE; --"):  # type: ignore[arg-type]
            pass


async def test_a_cancelled_task_rolls_back_and_returns_its_connection(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    async with Database(login_url, size=PoolSize(least=1, most=1)) as database:
        reached = asyncio.Event()

        async def stuck() -> None:
            async with database.tx(Role.APP, system=True) as tx:
                await tx.execute(ADD, {"id": uuid4(), "slug": "never", "now": tx.now})
                reached.set()
                await tx.fetch(q("SELECT pg_sleep(60)"))

        task = asyncio.create_task(stuck())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await count(database) == 0


async def test_a_cancelled_scope_which_cancels_every_wait_still_returns_the_connection(
    login_url: str,
) -> None:
    """How web frameworks cancel: each await inside raises again, those of the clean-up included."""
    async with Database(login_url, size=PoolSize(least=1, most=1)) as database:
        with anyio.CancelScope() as scope:
            async with database.tx(Role.APP, system=True) as tx:
                await tx.execute(ADD, {"id": uuid4(), "slug": "never", "now": tx.now})
                scope.cancel()
                await tx.fetch(COUNT)
        assert scope.cancelled_caught
        assert await count(database) == 0


async def test_a_statement_that_takes_too_long_is_ended(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="did not finish a statement in time"):  # noqa: PT012  # the claim is about the whole transaction
        async with database.tx(Role.APP) as tx:
            await tx.fetch(q("SELECT set_config('statement_timeout', '20ms', true)"))
            await tx.fetch(q("SELECT pg_sleep(60)"))


async def test_a_transaction_in_which_we_stood_still_too_long_is_no_fault_of_its_statements(
    database: Database, owner: psycopg.Connection[Any]
) -> None:
    """As a worker that was frozen finds it: what it reports is kept and sent again, not taken for poison."""
    hasty = q("SELECT set_config('idle_in_transaction_session_timeout', '20ms', true), pg_backend_pid()")
    gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    with pytest.raises(DatabaseUnavailable, match="idle-in-transaction"):  # noqa: PT012  # the claim is about the whole transaction
        async with database.tx(Role.ENGINE) as tx:
            [row] = await tx.fetch(hasty)
            await wait_until(lambda: owner.execute(gone, [row["pg_backend_pid"]]).fetchone() == (0,))
            await tx.fetch(q("SELECT 1"))
    async with database.tx(Role.ENGINE) as tx:
        assert await tx.fetch(q("SELECT 1 AS one")) == [{"one": 1}]


async def test_a_full_pool_refuses_instead_of_waiting_for_ever(login_url: str) -> None:
    async with (
        Database(login_url, size=PoolSize(least=1, most=1, wait=0.2)) as database,
        database.tx(Role.APP),
    ):
        with pytest.raises(DatabaseUnavailable, match="cannot be used right now"):
            async with database.tx(Role.APP):
                pass
