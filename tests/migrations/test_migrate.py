"""The migration runner: forward, once each, refusing what it does not understand."""

from __future__ import annotations

import threading
from dataclasses import replace
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from foliot import __version__
from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.migrate import Migration, is_current, migrate, packaged
from foliot.storage.server import RetryPeriod
from foliot.testing.database import LOGIN, pool_url

Connection = psycopg.Connection[Any]
NEXT = packaged()[-1].number + 1


def more(*texts: str) -> list[Migration]:
    """The released migrations, and some of tomorrow's."""
    return [*packaged(), *(Migration(NEXT + at, f"later_{at}", text) for at, text in enumerate(texts))]


def test_an_empty_database_gets_every_migration_once(empty_url: str) -> None:
    assert migrate(empty_url, login=LOGIN).applied == tuple(migration.label for migration in packaged())
    assert migrate(empty_url, login=LOGIN).applied == ()
    with psycopg.connect(empty_url) as connection:
        rows = connection.execute(
            "SELECT number, name, checksum FROM foliot.migrations ORDER BY number"
        ).fetchall()
        assert rows == [(migration.number, migration.name, migration.checksum) for migration in packaged()]
        outside = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert connection.execute(outside).fetchall() == [], "everything lives in its own schema"


def test_the_services_login_sees_that_nothing_is_pending(owner_url: str, empty_url: str) -> None:
    assert is_current(pool_url(owner_url))
    assert is_current(owner_url)
    assert not is_current(empty_url)
    assert not is_current(pool_url(empty_url))


def test_a_login_that_may_not_migrate_reads_who_may(owner_url: str, owner: Connection) -> None:
    owner.execute("DELETE FROM foliot.migrations WHERE number = (SELECT max(number) FROM foliot.migrations)")
    assert not is_current(pool_url(owner_url))
    with pytest.raises(DatabaseUnavailable, match="this login may not change that") as caught:
        migrate(pool_url(owner_url))
    assert "FOLIOT_MIGRATE_URL" in str(caught.value.hint)


def test_the_login_of_another_foliot_on_the_server_cannot_come_in(empty_url: str, owner: Connection) -> None:
    other = f"foliot_test_{token_hex(6)}"
    owner.execute(f"CREATE ROLE {other} LOGIN PASSWORD 'pw' IN ROLE foliot_app".encode())
    theirs = make_conninfo(empty_url, user=other, password="pw")
    try:
        psycopg.connect(theirs).close()
        migrate(empty_url, login=LOGIN)
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(theirs)
        psycopg.connect(pool_url(empty_url)).close()
        with psycopg.connect(empty_url, autocommit=True) as admin:
            admin.execute(f"GRANT CONNECT ON DATABASE {admin.info.dbname} TO PUBLIC".encode())
        migrate(empty_url, login=LOGIN, migrations=more("SELECT 1"))
        psycopg.connect(theirs).close()  # what the administrator decided stays so
    finally:
        owner.execute(f"DROP ROLE {other}".encode())


def test_a_database_that_other_programs_use_stays_open_to_them(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute("CREATE TABLE public.orders (id int)")
        migrate(empty_url, login=LOGIN)
        is_open = "SELECT has_database_privilege('public', current_database(), 'CONNECT')"
        assert admin.execute(is_open).fetchone() == (True,)


def test_a_new_migration_follows_the_old_ones(empty_url: str) -> None:
    migrate(empty_url, login=LOGIN)
    assert migrate(empty_url, login=LOGIN, migrations=more("CREATE TABLE later (id int)")).applied == (
        f"{NEXT:04}_later_0",
    )
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT count(*) FROM foliot.later").fetchone() == (0,)


def test_a_failing_migration_leaves_nothing_of_itself(empty_url: str) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(empty_url, login=LOGIN, migrations=more("CREATE TABLE half (id int); SELECT 1 / 0"))
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT to_regclass('foliot.half')").fetchone() == (None,)
        assert connection.execute("SELECT max(number) FROM foliot.migrations").fetchone() == (NEXT - 1,)


def test_a_database_newer_than_the_code_is_refused_with_both_versions(empty_url: str) -> None:
    migrate(empty_url, login=LOGIN, migrations=more("SELECT 1"))
    with pytest.raises(DatabaseUnavailable) as caught:
        migrate(empty_url, login=LOGIN)
    assert f"{NEXT:04}_later_0" in caught.value.message
    assert f"Foliot {__version__} knows them up to {packaged()[-1].label}" in caught.value.message


def test_a_changed_migration_is_refused_by_file(empty_url: str) -> None:
    migrate(empty_url, login=LOGIN)
    edited = [replace(packaged()[0], text=packaged()[0].text + "-- improved"), *packaged()[1:]]
    with pytest.raises(DatabaseUnavailable, match=rf"{packaged()[0].label}\.sql is not the one"):
        migrate(empty_url, login=LOGIN, migrations=edited)


def test_a_database_of_the_development_migrations_is_refused_and_left_alone(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA foliot")
        connection.execute(
            "CREATE TABLE foliot.migrations (number int PRIMARY KEY, name text, checksum text, applied_at timestamptz)"
        )
        connection.execute("INSERT INTO foliot.migrations SELECT 1, 'foundation', 'x'")
        connection.execute(
            "INSERT INTO foliot.migrations SELECT n, 'later', 'x' FROM generate_series(2, 24) AS n"
        )
        with pytest.raises(DatabaseUnavailable, match="development version") as caught:
            migrate(empty_url, login=LOGIN)
        assert "empty database" in str(caught.value.hint)
        tables = "SELECT array_agg(relname::text) FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r'"
        assert connection.execute(tables).fetchone() == (["migrations"],)


def test_line_endings_do_not_change_a_checksum() -> None:
    first = packaged()[0]
    assert replace(first, text=first.text.replace("\n", "\r\n")).checksum == first.checksum


def test_a_migration_outside_a_transaction_can_build_an_index_concurrently(empty_url: str) -> None:
    index = (
        "-- foliot: no-transaction\n"
        "DROP INDEX CONCURRENTLY IF EXISTS audit_by_actor;\n"
        "CREATE INDEX CONCURRENTLY audit_by_actor ON audit (workspace_id, actor);\n"
    )
    assert migrate(empty_url, login=LOGIN, migrations=more(index)).applied[-1] == f"{NEXT:04}_later_0"
    with psycopg.connect(empty_url, autocommit=True) as connection:
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'foliot.audit_by_actor'::regclass"
        assert connection.execute(valid).fetchone() == (True,)
        # As if it had been killed after the index and before the record: it runs again from the start.
        connection.execute("DELETE FROM foliot.migrations WHERE number = %s", [NEXT])
        assert migrate(empty_url, login=LOGIN, migrations=more(index)).applied == (f"{NEXT:04}_later_0",)
        assert connection.execute(valid).fetchone() == (True,)


def test_a_migration_behind_a_long_query_waits_in_short_turns_and_then_succeeds(owner_url: str) -> None:
    widen = more("ALTER TABLE audit ADD COLUMN more text")
    with psycopg.connect(owner_url) as reader, psycopg.connect(owner_url, autocommit=True) as traffic:
        reader.execute("SELECT * FROM foliot.audit").fetchall()  # an open transaction that read the table
        done: list[tuple[str, ...]] = []
        runner = threading.Thread(
            target=lambda: done.append(migrate(owner_url, login=LOGIN, migrations=widen).applied)
        )
        runner.start()
        until(
            traffic,
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'foliot.audit'::regclass)",
        )
        # Queued behind the migration, which is queued behind the reader: let through when the migration's turn ends.
        traffic.execute("SET statement_timeout TO '30s'")
        traffic.execute("SELECT count(*) FROM foliot.audit")
        assert not done
        reader.rollback()
        runner.join(timeout=60)
        assert done == [(f"{NEXT:04}_later_0",)]


def test_a_migration_that_never_gets_its_lock_gives_up_with_an_explanation(owner_url: str) -> None:
    with psycopg.connect(owner_url) as reader:
        reader.execute("SELECT * FROM foliot.audit").fetchall()
        with pytest.raises(DatabaseUnavailable, match="long transactions hold its tables"):
            migrate(
                owner_url, login=LOGIN, migrations=more("ALTER TABLE audit ADD COLUMN more text"), patience=0
            )


def test_the_packaged_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [migration.number for migration in packaged()] == list(range(1, len(packaged()) + 1))


def until(connection: Connection, question: str) -> None:
    """Ask until the answer is yes."""
    waiting = RetryPeriod(30)
    while connection.execute(question.encode()).fetchone() != (True,):
        assert waiting.again(), question
