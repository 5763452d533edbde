"""The pool outlives the server's bad moments."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.errors import is_retryable, may_retry
from foliot.storage.queries import SqlQuery
from foliot.storage.tx import Database, PoolSize, Role
from foliot.testing.database import LOGIN

PID = SqlQuery("test.pid", b"SELECT pg_backend_pid() AS pid")
END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND datname = current_database()"


async def pid(database: Database) -> int:
    async with database.tx(Role.APP) as tx:
        row = await tx.fetch_one(PID)
    assert row is not None
    return int(row["pid"])


async def test_connections_that_died_while_idle_are_replaced_unnoticed(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    async with Database(login_url, size=PoolSize(least=4, most=4)) as database:
        before = await pid(database)
        for _ in range(3):
            assert len(owner.execute(END_ALL, [LOGIN.name]).fetchall()) >= 1
            assert await pid(database) != before


async def test_a_connection_that_dies_in_a_transaction_is_an_honest_error(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    async with Database(login_url) as database:
        with pytest.raises(DatabaseUnavailable) as caught:  # noqa: PT012  # the claim is about the whole transaction
            async with database.tx(Role.APP) as tx:
                await tx.fetch(PID)
                owner.execute(END_ALL, [LOGIN.name])
                await tx.fetch(PID)
        assert may_retry(caught.value)
        assert await pid(database)


async def test_a_commit_without_an_answer_says_that_the_outcome_is_unknown(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    async with Database(login_url) as database:
        with pytest.raises(DatabaseUnavailable, match="may be kept or not"):  # noqa: PT012  # the claim is about the whole transaction
            async with database.tx(Role.APP) as tx:
                await tx.fetch(PID)
                owner.execute(END_ALL, [LOGIN.name])


async def test_no_server_is_said_in_one_sentence() -> None:
    database = Database("host=/nonexistent dbname=x", size=PoolSize(wait=0.3))
    with pytest.raises(DatabaseUnavailable):
        await database.open()


@pytest.mark.parametrize("state", ["08006", "08001", "40001", "40P01", "57P01", "57P02", "57P03", "53300"])
def test_what_may_be_tried_again(state: str) -> None:
    assert is_retryable(state)


@pytest.mark.parametrize("state", [None, "", "23505", "42501", "57014", "53100", "25006", "XX000"])
def test_what_may_not_be_tried_again(state: str | None) -> None:
    assert not is_retryable(state)
