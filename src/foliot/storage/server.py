"""The PostgreSQL server: refuse one that Foliot cannot work with, and warn about settings that weaken its guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from random import SystemRandom
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from foliot.clock import monotonic, pause
from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.errors import unavailable

OLDEST = 15
# Older minors let a user with table statistics see rows that row-level security hides (CVE-2025-8713).
_RLS_FIXED_IN = {15: 14, 16: 10, 17: 6}

_FACTS = """
SELECT current_setting('server_version_num')::int AS version,
       pg_is_in_recovery() AS in_recovery,
       current_setting('transaction_read_only')::bool AS read_only,
       current_setting('fsync')::bool AS fsync,
       current_setting('full_page_writes')::bool AS full_page_writes,
       current_setting('synchronous_commit') <> 'off' AS synchronous_commit,
       session_user::text AS login,
       login.rolsuper AS is_superuser,
       login.rolbypassrls AS bypasses_rls,
       COALESCE((SELECT pg_has_role(session_user, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'foliot'), false) AS is_owner,
       COALESCE((SELECT bool_or(pg_has_role(session_user, oid, 'USAGE')) FROM pg_roles
                  WHERE rolname IN ('foliot_app', 'foliot_engine')), false) AS inherits
  FROM pg_roles AS login WHERE login.rolname = session_user
"""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    version: str  # 15.19
    login: str
    one_login: (
        bool  # the service's login can also change the schema, so workspaces are separated once, not twice
    )
    warnings: tuple[str, ...]


def inspect(url: str, *, patience: float = 0.0) -> ServerFacts:
    """Inspect the server with this URL's login. Raise `DatabaseUnavailable` for a server that Foliot refuses."""
    with connect(url, patience=patience) as connection:
        return inspect_connection(connection)


def inspect_connection(connection: psycopg.Connection[DictRow]) -> ServerFacts:
    row = connection.execute(_FACTS).fetchone()
    assert row is not None
    return judge(row)


def judge(facts: dict[str, Any]) -> ServerFacts:
    major, minor = divmod(facts["version"], 10_000)
    version = f"{major}.{minor}"
    if major < OLDEST:
        raise DatabaseUnavailable(
            f"This is PostgreSQL {version}; Foliot needs {OLDEST} or newer.",
            hint="Upgrade the server, or use another one.",
        )
    if facts["in_recovery"]:
        raise DatabaseUnavailable(
            "This server is a replica or still recovering.", hint="Connect to the primary."
        )
    if facts["read_only"]:
        raise DatabaseUnavailable(
            "This database is read-only.",
            hint="Check default_transaction_read_only, or connect to the primary.",
        )
    one_login = facts["is_owner"] or facts["is_superuser"]
    return ServerFacts(version, facts["login"], one_login, tuple(_warnings(facts, major, minor, one_login)))


def _warnings(facts: dict[str, Any], major: int, minor: int, one_login: bool) -> list[str]:
    login = facts["login"]
    checks = (
        (not facts["fsync"], "fsync is off: a power cut can destroy the whole database."),
        (
            not facts["full_page_writes"],
            "full_page_writes is off: a power cut can tear pages of the database.",
        ),
        (
            not facts["synchronous_commit"],
            "synchronous_commit is off: a crash loses changes that Foliot has confirmed.",
        ),
        (
            minor < _RLS_FIXED_IN.get(major, 0),
            f"PostgreSQL {major}.{minor} has a known hole in row-level security; {major}.{_RLS_FIXED_IN.get(major)} closes it.",
        ),
        (facts["is_superuser"], f"The login {login} is a superuser: row-level security does not bind it."),
        (facts["bypasses_rls"], f"The login {login} has BYPASSRLS: row-level security does not bind it."),
        (
            one_login,
            f"The login {login} both serves and owns the schema: workspaces are separated once, not twice. Two URLs make it two.",
        ),
        (
            facts["inherits"] and not one_login,
            f"The login {login} inherits Foliot's roles, so a forgotten role would not be an error: ALTER ROLE it NOINHERIT.",
        ),
    )
    return [sentence for is_so, sentence in checks if is_so]


def connect(url: str, *, patience: float = 10.0) -> psycopg.Connection[DictRow]:
    """Open a direct connection for start-up work, and wait for a server that is starting."""
    waiting = RetryPeriod(patience)
    while True:
        try:
            return psycopg.connect(
                url,
                autocommit=True,
                row_factory=dict_row,
                prepare_threshold=None,
                connect_timeout=5,
                client_encoding="UTF8",
                fallback_application_name="foliot",
            )
        except psycopg.ProgrammingError:
            # Leave out the driver's message: it quotes the unreadable part, which may be the password.
            raise DatabaseUnavailable(
                "The address of the database cannot be read.",
                hint="It is postgresql://user:password@host:5432/database?name=value, "
                "with % in the password written %25, @ %40, / %2F and a blank %20.",
            ) from None
        except psycopg.OperationalError as error:
            if _is_refused(error) or not waiting.again():
                raise unavailable(error) or error from error


def _is_refused(error: psycopg.OperationalError) -> bool:
    """Return whether the server is up and refused the password: waiting does not help."""
    return error.pgconn is not None and (error.pgconn.needs_password or error.pgconn.used_password)


_chance = SystemRandom()


class RetryPeriod:
    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    def again(self) -> bool:
        """Pause a moment and return True; False once the time is up."""
        left = self._until - monotonic()
        if left <= 0:
            return False
        pause(min(left, _chance.uniform(0.05, 0.25)))
        return True
