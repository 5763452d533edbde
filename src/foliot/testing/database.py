"""Real PostgreSQL for tests: a throw-away server, and a fresh migrated database for each test by cloning a template.

`python -m foliot.testing.database BINDIR COMMAND…` runs a command against a throw-away server of other binaries.

Why: docs/decisions/420-tests-and-documents-are-proofs.md
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start
from foliot.storage.migrate import migrate
from foliot.storage.roles import Login

NOT_DURABLE = {
    "fsync": "off",  # these databases need not survive a power cut; tests kill processes only
    "full_page_writes": "off",
    "autovacuum": "off",  # a vacuum of the template would delay cloning it
}
LOGIN = Login("foliot_test_pool", "only for tests")

# Drops to another user and asks the kernel to stop it with its parent, even after kill -9. The order matters: a change of user clears
# the request.
_HELPER = """
import ctypes, os, signal, sys
uid, gid = int(sys.argv[1]), int(sys.argv[2])
if os.getuid() != uid:
    os.setgroups([]); os.setgid(gid); os.setuid(uid)
ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass(frozen=True, slots=True)
class Databases:
    """A server with a migrated template on it."""

    admin_url: str
    template: str

    @contextmanager
    def fresh(self, *, migrated: bool = True) -> Iterator[str]:
        """Yield the owner's URL of a database that exists as long as the block."""
        name = f"foliot_test_{token_hex(6)}"
        source = self.template if migrated else "template0"
        # Copying files is half the work of writing everything to the log, where nothing is synced to a disk.
        statement = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        _on(self.admin_url, statement.format(Identifier(name), Identifier(source)))
        try:
            yield make_conninfo(self.admin_url, dbname=name)
        finally:
            _on(self.admin_url, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def databases() -> Iterator[Databases]:
    """Use the server of `FOLIOT_TEST_DATABASE_URL` (a superuser's URL), or start one."""
    if url := os.environ.get("FOLIOT_TEST_DATABASE_URL"):
        with _with_template(url) as found:
            yield found
        return
    with throwaway_server() as url, _with_template(url) as found:
        yield found


@contextmanager
def throwaway_server(bindir: Path | None = None) -> Iterator[str]:
    """Run a private PostgreSQL in a temporary folder and yield a superuser's URL."""
    with tempfile.TemporaryDirectory(prefix="foliot-test-", dir=memory_folder()) as folder:
        Path(folder).chmod(0o711)  # as root, the server runs as another user
        config = EmbeddedConfig(
            Path(folder, "data"),
            bindir=bindir,
            state_home=Path(folder),
            max_connections=60,
            settings=NOT_DURABLE,
        )
        with start(config) as server:
            yield server.owner_url


def pool_url(owner_url: str) -> str:
    """Return the URL of the same database for the pool's login."""
    return make_conninfo(owner_url, user=LOGIN.name, password=LOGIN.password)


def unprivileged_user() -> tuple[int, int]:
    """Return a user that is not root: PostgreSQL and PgBouncer refuse to run as root."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def as_unprivileged(program: Path, *args: str | Path) -> list[str]:
    uid, gid = unprivileged_user()
    return [sys.executable, "-c", _HELPER, str(uid), str(gid), str(program), *map(str, args)]


def memory_folder() -> str | None:
    """Return a folder in memory if it is large enough: cloning a database makes 300 files, six times faster there."""
    shared = Path("/dev/shm")  # noqa: S108  # the folder inside it is made by tempfile
    is_large_enough = (
        shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 2 << 30
    )
    return str(shared) if is_large_enough else None


@contextmanager
def _with_template(admin_url: str) -> Iterator[Databases]:
    template = f"foliot_template_{token_hex(6)}"
    _on(admin_url, SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(template)))
    try:
        migrate(make_conninfo(admin_url, dbname=template), login=LOGIN)
        yield Databases(admin_url, template)
    finally:
        _on(admin_url, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(template)))


def _on(url: str, statement: SQL | psycopg.sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def _main(args: Sequence[str]) -> int:
    bindir, *command = args
    with throwaway_server(Path(bindir)) as url:
        return subprocess.call(command, env=os.environ | {"FOLIOT_TEST_DATABASE_URL": url})


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
