"""The driver's errors: which mean that the database is unavailable, and which may be retried."""

from __future__ import annotations

import psycopg

from foliot.domain.errors import DatabaseUnavailable, MisplacedDatabase

_RETRYABLE = frozenset({"40001", "40P01", "57P01", "57P02", "57P03", "53300"})
# Connection, resources, shutdown, serialization failure or deadlock; idle in a transaction, or transaction too long.
_OUT_OF_REACH = ("08", "53", "57P", "40", "25P03", "25P04")
_BUSY = {
    "57014": "The database did not finish a statement in time.",
    "55P03": "The database could not get a lock in time.",
}
PRIMARY = "Check the address of the database; connect to the primary."
_STANDBY = "This server is a standby: it takes no writes until it is promoted."
_FOREIGN = "This is not Foliot's database, or its login may not act as Foliot's roles."
# Of the message that opens a transaction: BEGIN READ WRITE on a standby; a role that does not exist or may not be taken.
_MISPLACED = {"0A000": _STANDBY, "22023": _FOREIGN, "42501": _FOREIGN, "42704": _FOREIGN}
_NO_TABLES = frozenset({"42P01", "3F000"})
_CHECK = "Check that the server runs and accepts connections."
# A refused connection has no SQLSTATE here, only the server's message.
_REFUSALS = (
    (
        "authentication failed",
        "The server runs, but does not take this user and password: check both in the address.",
    ),
    ("no password supplied", "The server runs and asks for a password: put one into the address."),
    (
        '" does not exist',
        "The server runs: check the name of the database and of the user in the address, or create them.",
    ),
    (
        "no pg_hba.conf entry",
        "The server runs, but its pg_hba.conf has no entry for this connection: check user, database and sslmode.",
    ),
    (
        "permission denied for database",
        "The server runs: GRANT CONNECT ON DATABASE … TO this user, as the owner of the database.",
    ),
)


def is_retryable(sqlstate: str | None) -> bool:
    """Return whether a harmless statement may be sent again after this error."""
    return sqlstate is not None and (sqlstate.startswith("08") or sqlstate in _RETRYABLE)


def may_retry(error: BaseException) -> bool:
    """Return the same for an error that may be translated already. A lost connection has no SQLSTATE."""
    cause = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
    return isinstance(cause, psycopg.Error) and (is_lost(cause) or is_retryable(cause.sqlstate))


def is_lost(error: psycopg.Error) -> bool:
    """Return whether no server answered: the connection broke, failed to open, or the pool had none."""
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError)


def is_misfit(error: BaseException) -> bool:
    """Return whether the statement does not fit the database, whatever the row: a missing grant, another version's schema."""
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("42")


def misplaced(error: BaseException) -> MisplacedDatabase | None:
    """Translate the refusal to open a transaction by a server that is a standby, or a database that is not Foliot's."""
    if isinstance(error, psycopg.Error) and (sentence := _MISPLACED.get(error.sqlstate or "")):
        return MisplacedDatabase(sentence, hint=PRIMARY)
    return None


def is_read_only(error: psycopg.Error) -> bool:
    return error.sqlstate == "25006"


def unavailable(error: psycopg.Error) -> DatabaseUnavailable | None:
    """Translate an error of the database, not of the statement."""
    if is_read_only(error):
        return MisplacedDatabase(
            "The database takes no writes: it is a replica, or set read-only.", hint=PRIMARY
        )
    if sentence := _BUSY.get(error.sqlstate or ""):
        return DatabaseUnavailable(
            sentence, hint="Try again; if it lasts, look for long transactions on the server."
        )
    if error.sqlstate in _NO_TABLES:
        return MisplacedDatabase(
            "Foliot's tables are not in this database, or are those of another version.",
            hint="Check the address of the database; `foliot migrate` brings its tables up to date.",
        )
    if is_lost(error) or (error.sqlstate or "").startswith(_OUT_OF_REACH):
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return DatabaseUnavailable(
            f"PostgreSQL cannot be used right now: {reason}",
            hint=next((hint for words, hint in _REFUSALS if words in reason), _CHECK),
        )
    return None
