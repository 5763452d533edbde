"""The group roles and the login of the pool.

Roles belong to the whole server while migrations belong to one database, so another Foliot database may create the same
roles at this moment. Whichever error that collision raises, a moment later the role exists.

Why: docs/decisions/006-migrations-and-database-roles.md
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from psycopg import errors as pg
from psycopg.rows import DictRow
from psycopg.sql import SQL, Composed, Identifier, Literal

from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.server import RetryPeriod, connect
from foliot.storage.tx import Role

_COLLISIONS = (
    pg.DuplicateObject,
    pg.UniqueViolation,
    pg.InternalError_,
    pg.DeadlockDetected,
    pg.SerializationFailure,
)
_PATIENCE = 10.0
_SHARED = """
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname !~ '^pg_'
                  AND n.nspname NOT IN ('foliot', 'information_schema')
                  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')) AS is_shared
"""
Connection = psycopg.Connection[DictRow]
READER = "foliot_reader"  # for logins of programs that read reports; nothing of Foliot acts as it


@dataclass(frozen=True, slots=True)
class Login:
    """The login of the pool. With a password it is created or changed; without one it must exist."""

    name: str
    password: str | None = field(default=None, repr=False)


def ensure_login(owner_url: str, login: Login) -> None:
    """Create the login if it is missing, and grant it both roles and nothing else."""
    with connect(owner_url) as connection:
        ensure_roles(connection)
        grant_roles(connection, login)


def ensure_roles(connection: Connection) -> None:
    for role in (*Role, READER):
        _retry_collisions(lambda role=role: _ensure_role(connection, role))  # type: ignore[misc]


def grant_roles(connection: Connection, login: Login | None) -> None:
    """Grant both roles to this login; None is the owner itself, where one login does everything."""
    if login is None:
        row = connection.execute("SELECT session_user::text AS name").fetchone()
        assert row is not None
        _retry_collisions(lambda: _grant_roles(connection, row["name"], may_inherit=True))
        return
    _retry_collisions(lambda: _ensure_login(connection, login))
    _retry_collisions(lambda: _grant_roles(connection, login.name, may_inherit=False))
    _retry_collisions(lambda: _grant_connect(connection, login.name))


def revoke_public_connect(connection: Connection) -> None:
    """Revoke CONNECT from PUBLIC on a database that only Foliot uses: roles belong to the whole server, so the login of
    another Foliot database could act as them here.

    Runs once, with the first migration, if the owner may do it: a later GRANT by the administrator stays.
    """
    row = connection.execute(_SHARED).fetchone()
    assert row is not None
    if row["is_shared"]:
        return
    with suppress(pg.InsufficientPrivilege):
        connection.execute(
            SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(Identifier(connection.info.dbname))
        )


def _grant_connect(connection: Connection, name: str) -> None:
    """Grant CONNECT if the owner may; otherwise the login fails with a clear error when it connects."""
    row = connection.execute(
        "SELECT has_database_privilege(%s, current_database(), 'CONNECT') AS may", [name]
    ).fetchone()
    assert row is not None
    if not row["may"]:
        with suppress(pg.InsufficientPrivilege):
            connection.execute(
                SQL("GRANT CONNECT ON DATABASE {} TO {}").format(
                    Identifier(connection.info.dbname), Identifier(name)
                )
            )


def _retry_collisions(step: Callable[[], None]) -> None:
    waiting = RetryPeriod(_PATIENCE)
    while True:
        try:
            return step()
        except _COLLISIONS:
            if not waiting.again():
                raise


def _ensure_role(connection: Connection, role: str) -> None:
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls OR rolcanlogin AS is_too_strong FROM pg_roles WHERE rolname = %s",
        [str(role)],
    ).fetchone()
    if row is None:
        _execute(connection, SQL("CREATE ROLE {} NOLOGIN").format(Identifier(role)))
    elif row["is_too_strong"]:
        raise DatabaseUnavailable(
            f"The role {role} can log in or get around row-level security; Foliot does not use such a role.",
            hint=f"ALTER ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS;",
        )


def _ensure_login(connection: Connection, login: Login) -> None:
    exists = (
        connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [login.name]).fetchone() is not None
    )
    if login.password is None:
        if not exists:
            raise DatabaseUnavailable(
                f"There is no login {login.name} on this server.",
                hint=f"CREATE ROLE \"{login.name}\" LOGIN NOINHERIT PASSWORD '…';",
            )
        return
    # The verifier is computed here, so that the password itself reaches no server log.
    verifier = connection.pgconn.encrypt_password(
        login.password.encode(), login.name.encode(), b"scram-sha-256"
    ).decode()
    verb = SQL("ALTER" if exists else "CREATE")
    statement = SQL("{} ROLE {} LOGIN NOINHERIT PASSWORD {}").format(
        verb, Identifier(login.name), Literal(verifier)
    )
    _execute(connection, statement)


def _grant_roles(connection: Connection, name: str, *, may_inherit: bool) -> None:
    """Grant the roles without inheritance. Before PostgreSQL 16 only the login as a whole can refuse to inherit."""
    has_grant_options = connection.info.server_version >= 160_000
    for role in Role:
        row = connection.execute(
            "SELECT pg_has_role(%(name)s, %(role)s, %(how)s) AS may_act, pg_has_role(%(name)s, %(role)s, 'USAGE') AS inherits",
            {"name": name, "role": role.value, "how": "SET" if has_grant_options else "MEMBER"},
        ).fetchone()
        assert row is not None
        if row["may_act"] and (may_inherit or not row["inherits"]):
            continue
        how = SQL(" WITH INHERIT FALSE, SET TRUE" if has_grant_options else "")
        _execute(connection, SQL("GRANT {} TO {}").format(Identifier(role), Identifier(name)) + how)
        if not has_grant_options and not may_inherit:
            _execute(connection, SQL("ALTER ROLE {} NOINHERIT").format(Identifier(name)))


def _execute(connection: Connection, statement: Composed) -> None:
    try:
        connection.execute(statement)
    except pg.InsufficientPrivilege as error:
        text = statement.as_string(connection)
        printable = text.partition(" PASSWORD ")[0]
        raise DatabaseUnavailable(
            "The owner of the database may not manage roles on this server.",
            hint=f"Let an administrator run, once: {printable};",
        ) from error
