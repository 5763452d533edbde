"""Numbered forward migrations, run as the owner. `docs/explanation/migrations.md` says how to write one.

Several nodes may start at once, and a runner may be killed at any point: each migration is one transaction under an advisory
lock that ends with it. A migration waits two seconds for a table lock and then tries again, so that traffic does not queue
for long behind a migration that waits for a long query.

Why: docs/decisions/006-migrations-and-database-roles.md
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import psycopg
from psycopg import errors as pg
from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier

from foliot import __version__
from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.errors import unavailable
from foliot.storage.roles import Login, ensure_roles, grant_roles, revoke_public_connect
from foliot.storage.server import RetryPeriod, connect, inspect_connection
from foliot.storage.tx import Role

Connection = psycopg.Connection[DictRow]

_LOCK = 0x666F6C696F74  # "foliot"; advisory locks are per database
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_NO_TRANSACTION = "-- foliot: no-transaction"
_FIRST_OF_DEVELOPMENT = (
    "foundation"  # 0001_foundation began the 24 files that the first release replaced by a few
)

_OPEN = """
SET LOCAL search_path TO foliot, pg_temp;
SET LOCAL lock_timeout TO '2s';
SET LOCAL statement_timeout TO 0;
SET LOCAL idle_in_transaction_session_timeout TO 0;
SET LOCAL client_connection_check_interval TO '1s'; -- a killed runner releases its locks in the middle of a statement
"""

_HISTORY = """
CREATE SCHEMA IF NOT EXISTS foliot;
CREATE TABLE IF NOT EXISTS foliot.migrations (
    number     integer     CONSTRAINT migrations_pkey PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def label(self) -> str:
        return f"{self.number:04}_{self.name}"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.replace("\r\n", "\n").encode()).hexdigest()

    @property
    def is_transactional(self) -> bool:
        return not self.text.startswith(_NO_TRANSACTION)

    def statements(self) -> list[str]:
        """Split a migration outside a transaction: each of its statements ends with a semicolon at the end of a line."""
        return [part for part in re.split(r";[ \t]*(?:\n|$)", self.text) if re.sub(r"--.*", "", part).strip()]


@dataclass(frozen=True, slots=True)
class MigrationReport:
    applied: tuple[str, ...]


class _Busy(Exception):
    """Another node is migrating."""


def packaged() -> tuple[Migration, ...]:
    """Return the migrations of this version, in order, without gaps."""
    folder = files("foliot.storage") / "migrations"
    found = [(file, _FILE.fullmatch(file.name)) for file in folder.iterdir() if file.name.endswith(".sql")]
    migrations = sorted(
        (Migration(int(name[1]), name[2], file.read_text("utf-8")) for file, name in found if name),
        key=lambda migration: migration.number,
    )
    if [migration.number for migration in migrations] != list(range(1, len(found) + 1)):
        raise ValueError("migrations are named 0001_words.sql, 0002_words.sql, … without gaps")
    return tuple(migrations)


def migrate(
    owner_url: str,
    *,
    login: Login | None = None,
    migrations: Sequence[Migration] | None = None,
    patience: float = 300.0,
) -> MigrationReport:
    """Bring the database to this version and grant the roles to the pool's login (None: the owner itself serves)."""
    migrations = packaged() if migrations is None else migrations
    waiting = RetryPeriod(patience)
    applied: list[str] = []
    with connect(owner_url) as connection:
        try:
            inspect_connection(connection)
            ensure_roles(connection)
            while migration := _apply_next(connection, owner_url, migrations, waiting):
                applied.append(migration.label)
            if applied and applied[0] == migrations[0].label:
                revoke_public_connect(connection)
            grant_roles(connection, login)
        except pg.InsufficientPrivilege as error:
            raise DatabaseUnavailable(
                f"The database is not up to date, and this login may not change that: {error.diag.message_primary}.",
                hint="Set FOLIOT_MIGRATE_URL to the same database as its owner, or as a role with CREATE on it, for "
                "`foliot migrate` or one start. Nodes on a database that is up to date do without it.",
            ) from error
        except psycopg.Error as error:
            raise unavailable(error) or error from error
    return MigrationReport(tuple(applied))


def is_current(url: str) -> bool:
    """Check, as the service's own login, that every migration is applied.

    Raise for a database that is newer than this Foliot, or made by other migrations.
    """
    with connect(url) as connection:
        inspect_connection(connection)
        try:
            with connection.transaction():
                for role in Role:
                    connection.execute(SQL("SET LOCAL ROLE {}").format(Identifier(role)))
                return _next(_history(connection), packaged()) is None
        except (pg.InsufficientPrivilege, pg.InvalidParameterValue, pg.UndefinedTable, pg.InvalidSchemaName):
            return False  # no roles, no right to act as them, or no tables: `migrate` reports which
        except psycopg.Error as error:
            raise unavailable(error) or error from error


def _apply_next(
    connection: Connection, owner_url: str, migrations: Sequence[Migration], waiting: RetryPeriod
) -> Migration | None:
    while True:
        try:
            with connection.transaction():
                return _apply_locked(connection, owner_url, migrations)
        except (_Busy, pg.LockNotAvailable, pg.DeadlockDetected) as error:
            if not waiting.again():
                raise DatabaseUnavailable(
                    "The database could not be migrated: another node is migrating it, or long transactions hold its tables.",
                    hint="Look at pg_stat_activity for transactions that are old, and start again.",
                ) from error


def _apply_locked(
    connection: Connection, owner_url: str, migrations: Sequence[Migration]
) -> Migration | None:
    connection.execute(_OPEN)
    # Try, do not wait: a waiting statement holds a snapshot, and CREATE INDEX CONCURRENTLY waits for snapshots.
    lock = connection.execute("SELECT pg_try_advisory_xact_lock(%s) AS acquired", [_LOCK]).fetchone()
    if not (lock and lock["acquired"]):
        raise _Busy
    migration = _pending(connection, migrations)
    if migration is None:
        return None
    if migration.is_transactional:
        connection.execute(migration.text.encode())
    else:
        with connect(owner_url) as other:  # while this transaction keeps the lock
            other.execute("SET search_path TO foliot, pg_temp; SET client_connection_check_interval TO '1s'")
            for statement in migration.statements():
                other.execute(statement.encode())
    connection.execute(
        "INSERT INTO foliot.migrations (number, name, checksum) VALUES (%s, %s, %s)",
        [migration.number, migration.name, migration.checksum],
    )
    return migration


def _pending(connection: Connection, migrations: Sequence[Migration]) -> Migration | None:
    found = connection.execute("SELECT to_regclass('foliot.migrations') IS NOT NULL AS exists").fetchone()
    if not (found and found["exists"]):
        connection.execute(_HISTORY)
    return _next(_history(connection), migrations)


def _history(connection: Connection) -> list[DictRow]:
    return connection.execute(
        "SELECT number, name, checksum FROM foliot.migrations ORDER BY number"
    ).fetchall()


def _next(history: Sequence[DictRow], migrations: Sequence[Migration]) -> Migration | None:
    """Return the first migration that the database lacks. Refuse a history that these migrations did not write."""
    if history and history[0]["name"] == _FIRST_OF_DEVELOPMENT:
        raise DatabaseUnavailable(
            "A development version of Foliot made this database: its migrations were replaced before the first release.",
            hint="There is no upgrade from it. Point Foliot at an empty database.",
        )
    for row, migration in zip(history, migrations, strict=False):
        if (row["number"], row["checksum"]) != (migration.number, migration.checksum):
            raise DatabaseUnavailable(
                f"Migration {migration.label}.sql is not the one that made this database"
                f" (recorded as {row['number']:04}_{row['name']}).",
                hint="A migration never changes once it is released: restore the file, and put the change into a new one.",
            )
    if len(history) > len(migrations):
        newest, known = history[-1], migrations[-1].label if migrations else "none"
        raise DatabaseUnavailable(
            f"This database is newer than this Foliot: it is at migration {newest['number']:04}_{newest['name']},"
            f" and Foliot {__version__} knows them up to {known}.",
            hint="Start the newer version of Foliot, or restore a backup from before the upgrade.",
        )
    return migrations[len(history)] if len(history) < len(migrations) else None
