"""Open the database that the settings name: the private one, started here and stopped last, or the operator's own.

Why: docs/decisions/001-postgresql-is-the-only-database.md
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foliot import telemetry
from foliot.clock import monotonic
from foliot.domain.errors import DatabaseUnavailable, NotFound
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.failures import cannot_write
from foliot.embedded.locations import has_database
from foliot.embedded.locks import make_data_dir, serve_lock
from foliot.embedded.server import EmbeddedServer, find_running
from foliot.embedded.server import start as start_postgres
from foliot.settings import Settings
from foliot.storage.migrate import is_current
from foliot.storage.migrate import migrate as migrate_database
from foliot.storage.roles import Login
from foliot.storage.server import ServerFacts, inspect

log = logging.getLogger(__name__)
SERVICE_LOGIN = "foliot_service"
# libpq reads these where an address is silent. They are meant for the user's other servers, and would break the connection to the private
# one. Host, user, password and database stay for jobs: our addresses name their own.
LIBPQ_VARIABLES = frozenset(
    [
        "PGHOSTADDR",
        "PGSERVICE",
        "PGSERVICEFILE",
        "PGOPTIONS",
        "PGTARGETSESSIONATTRS",
        "PGLOADBALANCEHOSTS",
        "PGSSLMODE",
        "PGREQUIRESSL",
        "PGSSLNEGOTIATION",
        "PGSSLCERTMODE",
        "PGGSSENCMODE",
        "PGREQUIREAUTH",
        "PGREQUIREPEER",
        "PGCHANNELBINDING",
        "PGCLIENTENCODING",
        "PGMINPROTOCOLVERSION",
        "PGMAXPROTOCOLVERSION",
        "PGDATESTYLE",
        "PGTZ",
        "PGGEQO",
    ]
)
STOP_POSTGRES_WITHIN, STOP_POSTGRES_AT_LEAST = 5.0, 1.0  # seconds of the 15 that a stop may take


@dataclass(slots=True)
class DatabaseHandle:
    """The open database. `server` is set when it is the private one."""

    owner_url: str
    url: str
    login: Login | None
    server: EmbeddedServer | None = None
    bindir: Path | None = None  # of its programs, where this process did not start it
    stop_by: float | None = None  # on the monotonic clock, once the node must stop

    @property
    def is_joined(self) -> bool:
        """Whether it is a private database that another process has started."""
        return self.bindir is not None

    @property
    def where(self) -> str:
        return f"private, in {self.server.cluster}" if self.server else "given by FOLIOT_DATABASE_URL"


@contextmanager
def lock_data_dir(settings: Settings) -> Iterator[None]:
    """Lock the data directory of the private database; a second Foliot on it is refused before it touches anything."""
    if settings.database_url is not None:
        yield
        return
    with serve_lock(settings.data_dir):
        yield


def require_database(settings: Settings) -> None:
    """Refuse a missing private database: a mistyped directory would become a new, empty one."""
    if settings.database_url is None and not has_database(settings.data_dir):
        raise NotFound(
            f"There is no database in {settings.data_dir}.",
            hint="Check FOLIOT_DATA_DIR or --data-dir; it is relative to the current folder. `foliot serve` makes a new one.",
        )


@contextmanager
def open_database(settings: Settings) -> Iterator[DatabaseHandle]:
    """Start the private PostgreSQL, unless the user has one, and stop it at the end. Call it inside `lock_data_dir`."""
    if settings.database_url is not None:
        # Where the owner has its own address, the service's login needs no right but to act as Foliot's two roles.
        login = Login(inspect(settings.database_url).login) if settings.migrate_url else None
        yield DatabaseHandle(settings.migrate_url or settings.database_url, settings.database_url, login)
        return
    _remove_libpq_variables()
    server = start_postgres(_embedded(settings))
    log.info("postgres.started", extra={"version": server.version, "pid": server.pid, "port": server.port})
    for note in server.notes:
        log.info("postgres.noted", extra={"note": note})
    # A new password at every start: it exists in memory and in the database's verifier, never in a file.
    login = Login(SERVICE_LOGIN, secrets.token_urlsafe(32))
    handle = DatabaseHandle(server.owner_url, server.url(SERVICE_LOGIN, login.password or ""), login, server)
    try:
        yield handle
    finally:
        assert handle.server is not None
        left = STOP_POSTGRES_WITHIN if handle.stop_by is None else handle.stop_by - monotonic()
        handle.server.stop(max(STOP_POSTGRES_AT_LEAST, min(STOP_POSTGRES_WITHIN, left)))
        log.info("postgres.stopped")


@contextmanager
def open_or_join_database(settings: Settings) -> Iterator[DatabaseHandle]:
    """Open the database, or connect to the private one that a running `foliot serve` has open."""
    if settings.database_url is None and (running := find_running(_embedded(settings))) is not None:
        _remove_libpq_variables()
        yield DatabaseHandle(running.owner_url, running.owner_url, None, bindir=running.bindir)
        return
    with lock_data_dir(settings), open_database(settings) as handle:
        yield handle


def restart_postgres(settings: Settings, handle: DatabaseHandle) -> EmbeddedServer:
    """Restart the dead private PostgreSQL on its old port, so that all addresses stay valid."""
    dead = handle.server
    assert dead is not None
    dead.stop(STOP_POSTGRES_WITHIN)
    handle.server = start_postgres(_embedded(settings, dead.port))
    if handle.server.port != dead.port:
        raise DatabaseUnavailable(
            f"PostgreSQL died and its port {dead.port} has been taken meanwhile.", hint="Start Foliot again."
        )
    log.warning("postgres.restarted", extra={"pid": handle.server.pid, "port": handle.server.port})
    return handle.server


def migrate_and_inspect(handle: DatabaseHandle) -> tuple[tuple[str, ...], ServerFacts]:
    """Migrate, then inspect the server as the service's login. Return the applied migrations and the server's facts."""
    applied: tuple[str, ...] = ()
    # A single address may be the service's: it needs no owner's rights while there is nothing to migrate.
    if handle.login is not None or not is_current(handle.url):
        applied = migrate_database(handle.owner_url, login=handle.login).applied
    for name in applied:
        log.info("migration.applied", extra={"migration": name})
    facts = inspect(handle.url)
    for warning in facts.warnings:
        log.warning("database.warned", extra={"warning": warning})
    return applied, facts


def configure_logging(settings: Settings, *, least: str | None = None) -> None:
    """Configure logging. `least` is the level of a short command, unless the user set another."""
    level = settings.log_level if least is None or settings.origins["log_level"] != "default" else least
    telemetry.configure(
        style=settings.log_format,
        level=level,
        stream=sys.stderr,
        environ=os.environ,
        secrets=settings.secrets(),
    )


def write_admin_key(data_dir: Path, key: str) -> Path:
    """Write `admin.key`, alone on one line, ours alone to read. One that is there already opens some other database
    or none, since this one has no administrator yet; it is kept as `admin.key.old`.
    """
    make_data_dir(data_dir)
    path = data_dir / "admin.key"
    try:
        if os.path.lexists(path):  # a link that leads nowhere is in the way too
            path.replace(data_dir / "admin.key.old")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def _remove_libpq_variables() -> None:
    """Remove them from this process, and so from the worker and the client programs that it starts."""
    if found := sorted(LIBPQ_VARIABLES & os.environ.keys()):
        log.info("environment.ignored", extra={"names": found})
    for name in found:
        del os.environ[name]


def _embedded(settings: Settings, port: int | None = None) -> EmbeddedConfig:
    elsewhere = os.environ.get("XDG_STATE_HOME")
    return EmbeddedConfig(
        settings.data_dir,
        bindir=settings.pg_bindir,
        port=port,
        state_home=Path(elsewhere) if elsewhere else None,
    )
