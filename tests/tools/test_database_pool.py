"""The pool lends a database in its first state, whatever the test before did to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from foliot.testing.database import Databases
from tests.database_pool import MOST_DEAD_ROWS, DatabasePool

INSERT = (
    "INSERT INTO foliot.workspaces (id, slug, name, created_at)"
    " SELECT gen_random_uuid(), 'w' || n, 'w', now() FROM generate_series(1, %s) AS n"
)


@pytest.fixture
def pool(server: Databases) -> Iterator[DatabasePool]:
    with closing(DatabasePool(server)) as opened:
        yield opened


def test_rows_and_sequences_are_reset_and_the_rows_of_migrations_stay(pool: DatabasePool) -> None:
    with pool.lend() as first:
        url, owner = first.url, first.owner
        migrations = owner.execute("SELECT * FROM foliot.migrations").fetchall()
        owner.execute(INSERT, [3])
        owner.execute("DELETE FROM foliot.migrations")
        owner.execute("SELECT nextval('foliot.ready_position_seq')")
    with pool.lend() as second:
        assert second.url == url
        assert second.owner.execute("SELECT count(*) FROM foliot.workspaces").fetchone() == (0,)
        assert second.owner.execute("SELECT * FROM foliot.migrations").fetchall() == migrations
        assert second.owner.execute("SELECT nextval('foliot.ready_position_seq')").fetchone() == (1,)


def test_a_session_is_reset_and_other_connections_are_ended(pool: DatabasePool) -> None:
    with pool.lend() as first:
        url = first.url
        first.owner.execute("SET work_mem = '5MB'; SELECT pg_advisory_lock(1)")
        other = psycopg.connect(url)
        other.execute("SELECT 1")  # in a transaction
    with pool.lend() as second:
        assert second.url == url
        assert second.owner.execute("SHOW work_mem").fetchone() != ("5MB",)
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert second.owner.execute(held).fetchone() == (0,)
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
    other.close()


def test_a_connection_that_a_test_closed_is_replaced(pool: DatabasePool) -> None:
    with pool.lend() as first:
        first.owner.close()
    with pool.lend() as second:
        assert second.owner.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE foliot.jobs ADD COLUMN more text",
        "DROP INDEX foliot.runs_one_per_planned_time",
        "GRANT SELECT ON foliot.jobs TO PUBLIC",
        "CREATE TABLE public.mine (n int)",
        "CREATE FUNCTION foliot.f() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE POLICY more ON foliot.jobs USING (true)",
        "CREATE TEMP TABLE t (n int)",
        "ALTER TABLE foliot.jobs DISABLE ROW LEVEL SECURITY",
        "ANALYZE foliot.migrations",
        "DROP SCHEMA foliot CASCADE",
    ],
)
def test_a_database_with_another_catalogue_is_not_lent_again(pool: DatabasePool, statement: str) -> None:
    with pool.lend() as first:
        url = first.url
        first.owner.execute(statement.encode())
    with pool.lend() as second:
        assert second.url != url
        assert second.owner.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (0,)


def test_settings_of_the_database_are_part_of_its_first_state(pool: DatabasePool) -> None:
    with pool.lend() as first:
        url, name = first.url, first.owner.info.dbname
        first.owner.execute(f"ALTER DATABASE {name} SET work_mem = '5MB'".encode())
    with pool.lend() as second:
        assert second.url != url


def test_a_database_with_many_dead_rows_is_not_lent_again(pool: DatabasePool) -> None:
    with pool.lend() as first:
        url = first.url
        first.owner.execute(INSERT, [MOST_DEAD_ROWS])
    with pool.lend() as second:
        assert second.url != url


def test_two_loans_at_once_are_two_databases(pool: DatabasePool) -> None:
    with pool.lend() as first, pool.lend() as second:
        assert first.url != second.url
