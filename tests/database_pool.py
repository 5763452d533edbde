"""A pool of migrated databases for tests.

Copying a template and dropping the copy costs some 45 ms of CPU and leaves every connection with cold caches; deleting the
rows of the last test costs 3 ms. So a database is lent, emptied and lent again. One whose catalogue changed (a test altered
a table, granted a right, gathered statistics) or that holds many dead rows is dropped, and a new copy takes its place.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from foliot.testing.database import LOGIN, Databases

MOST_DEAD_ROWS = 5_000
MOST_LOANS = 100
PATIENCE = 20.0  # seconds
SALT = bytes(16)
CATALOGUES = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_trigger", "pg_policy", "pg_proc", "pg_namespace",
    "pg_statistic", "pg_type", "pg_depend", "pg_event_trigger", "pg_extension", "pg_default_acl", "pg_init_privs",
)  # fmt: skip
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'foliot' ORDER BY tablename"
SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'foliot' ORDER BY sequencename"
# As DISCARD ALL, which would drop statements that the driver believes prepared.
SESSION = (
    "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; DISCARD TEMP; SELECT pg_advisory_unlock_all()"
)
END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
# Every change of a catalogue row gives it a newer xmin; a row that is gone lowers the count.
FINGERPRINT = (
    "SELECT "
    + " || ".join(
        f"(SELECT ' ' || count(*) || ' ' || coalesce(max(xmin::text::bigint), 0) FROM {name})"
        for name in CATALOGUES
    )
    + " || (SELECT coalesce(string_agg(setrole::text || setconfig::text, ' ' ORDER BY setrole), '')"
    "  FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database())"
    " || (SELECT ' ' || coalesce(datacl::text, '') || datconnlimit FROM pg_database WHERE datname = current_database())"
)


def make_login_cheap(admin_url: str) -> None:
    """Store the login's password hashed once instead of 4,096 times: each connection of each test computes the hash."""
    assert LOGIN.password is not None
    statement = SQL("ALTER ROLE {} PASSWORD {}").format(Identifier(LOGIN.name), _secret(LOGIN.password))
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(statement)


def _secret(password: str) -> str:
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, 1)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    salt, stored_text, server_text = (
        base64.b64encode(part).decode()
        for part in (SALT, stored, hmac.digest(salted, b"Server Key", "sha256"))
    )
    return f"SCRAM-SHA-256$1:{salt}${stored_text}:{server_text}"


class PooledDatabase:
    """A database with its superuser's connection, and the statements that bring it back to its first state."""

    def __init__(self, copy: AbstractContextManager[str]) -> None:
        self._copy = copy
        self.url = copy.__enter__()
        self.owner = self._connect()
        self._fingerprint = self._read_fingerprint()
        self._reset = self._reset_statements()
        self._dead_rows = 0
        self._loans = 0

    def is_reusable(self) -> bool:
        """Empty the database after a loan; False if it cannot be lent again."""
        try:
            if self.owner.closed or self.owner.info.transaction_status is not TransactionStatus.IDLE:
                self.owner.close()
                self.owner = self._connect()
            self._bring_back()
        except psycopg.Error:
            return False
        self._loans += 1
        return (
            self._dead_rows < MOST_DEAD_ROWS
            and self._loans < MOST_LOANS
            and self._read_fingerprint() == self._fingerprint
        )

    def drop(self) -> None:
        self.owner.close()
        self._copy.__exit__(None, None, None)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def _bring_back(self) -> None:
        self.owner.row_factory = tuple_row
        self._end_others()
        done = self.owner.execute(self._reset)
        while True:
            self._dead_rows += max(done.rowcount, 0)
            if not done.nextset():
                return

    def _end_others(self) -> None:
        """Ask until none is left: the server's own wait for one to end looks every 100 ms."""
        deadline, nap = time.monotonic() + PATIENCE, threading.Event()
        while self.owner.execute(END_OTHERS).rowcount:
            assert time.monotonic() < deadline, f"connections to {self.url} do not end"
            nap.wait(0.001)

    def _read_fingerprint(self) -> str:
        found = self.owner.execute(FINGERPRINT.encode(), prepare=False).fetchone()
        assert found is not None
        return str(found[0])

    def _reset_statements(self) -> Composed:
        """Without triggers, and so without foreign keys: the order of tables does not matter."""
        tables = [Identifier("foliot", name) for (name,) in self.owner.execute(TABLES)]
        sequences = [Literal(f"foliot.{name}") for (name,) in self.owner.execute(SEQUENCES)]
        statements: list[Composable] = [SQL(SESSION), SQL("SET LOCAL session_replication_role = replica")]
        statements += [SQL("DELETE FROM {}").format(table) for table in tables]
        statements += [
            SQL("DO $$ BEGIN PERFORM setval({}, 1, false); END $$").format(each) for each in sequences
        ]
        statements += [filled for table in tables if (filled := self._fill_again(table))]
        return SQL("; ").join(statements)

    def _fill_again(self, table: Identifier) -> Composable | None:
        """The statement that inserts the rows which the migrations put there."""
        found = self.owner.execute(SQL("SELECT jsonb_agg(t)::text FROM {} AS t").format(table)).fetchone()
        assert found is not None
        if found[0] is None:
            return None
        insert = SQL("INSERT INTO {0} SELECT * FROM jsonb_populate_recordset(NULL::{0}, {1}::jsonb)")
        return insert.format(table, Literal(found[0]))


class DatabasePool:
    def __init__(self, server: Databases) -> None:
        self._server = server
        self._idle: list[PooledDatabase] = []

    @contextmanager
    def lend(self) -> Iterator[PooledDatabase]:
        lent = self._idle.pop() if self._idle else PooledDatabase(self._server.fresh())
        try:
            yield lent
        finally:
            if lent.is_reusable():
                self._idle.append(lent)
            else:
                lent.drop()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().drop()
