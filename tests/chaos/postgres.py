"""The PostgreSQL of a chaos run: a primary, a synchronous standby, and what can happen to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from foliot.embedded import binaries, privilege
from foliot.embedded.binaries import Binaries
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.launch import free_port
from foliot.embedded.privilege import Account, end_with_us, popen_options, run_as
from tests.stories.server_process import wait_until

OWNER, DATABASE, STANDBY = "foliot_owner", "foliot", "chaos_standby"
MAX_CONNECTIONS = 70
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": str(MAX_CONNECTIONS),
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "wal_level": "replica",
    "hot_standby": "on",
    "max_wal_senders": "5",
    "wal_keep_size": "512MB",
    "log_line_prefix": "%m [%p] ",
}


class Postgres:
    """One server with a folder of its own. Start it from the main thread: it ends with the thread that starts it."""

    def __init__(self, folder: Path, programs: Binaries, account: Account, preload: Path | None) -> None:
        self.folder, self.port = folder, free_port()
        self._programs, self._account, self._preload = programs, account, preload
        self.stall_file = folder / "stall"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        if account.is_lent:
            os.chown(folder, account.uid, account.gid)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, port: int | None = None, database: str = DATABASE) -> str:
        return f"postgresql://{OWNER}@127.0.0.1:{port or self.port}/{database}?connect_timeout=5"

    def create(self) -> None:
        self._run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            OWNER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        self.start()
        with psycopg.connect(self.url(database="postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def copy_of(self, primary: Postgres) -> None:
        """Become a standby of the primary."""
        source = f"host=127.0.0.1 port={primary.port} user={OWNER} application_name={STANDBY}"
        self._run(
            "pg_basebackup",
            "-D",
            str(self.data),
            "-d",
            source,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        (self.data / "postgresql.auto.conf").open("a").write(
            f"primary_conninfo = '{source}'\nsynchronous_standby_names = ''\n"
        )
        self.start()

    def start(self) -> None:
        environ = dict(privilege.CLEAN)
        if self._preload is not None:
            environ |= {"LD_PRELOAD": str(self._preload), "STALL_FILE": str(self.stall_file)}
        given = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = subprocess.Popen(
                (str(self._programs / "postgres"), "-D", str(self.data), "-p", str(self.port), *given),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=end_with_us(signal.SIGQUIT),  # noqa: PLW1509
                **popen_options(self._account) | {"env": environ},
            )  # fmt: skip
        wait_until(self.answers, "PostgreSQL to answer")

    def answers(self) -> bool:
        with suppress(psycopg.Error):
            self.rows("SELECT 1", database="postgres")
            return True
        return False

    def rows(self, query: Any, params: Any = None, database: str = DATABASE) -> list[Any]:
        with psycopg.connect(
            self.url(database=database), autocommit=True, options="-c default_transaction_read_only=off"
        ) as connection:
            found = connection.execute(query, params)
            return found.fetchall() if found.description else []

    def set(self, name: str, value: str) -> None:
        """Change a setting of the running server. An empty value resets it."""
        if value:
            self.rows(f"ALTER SYSTEM SET {name} = '{value}'")
        else:
            self.rows(f"ALTER SYSTEM RESET {name}")
        self.rows("SELECT pg_reload_conf()")

    def end_sessions(self) -> None:
        """End the sessions of the nodes."""
        self.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def promote(self) -> None:
        self.rows("SELECT pg_promote(true, 30)")

    def signal_all(self, number: signal.Signals) -> None:
        """Signal the server and all its processes."""
        assert self._process is not None
        for pid in (*children(self._process.pid), self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self.stall_file.unlink(missing_ok=True)
        self.signal_all(signal.SIGKILL)
        self._process.wait()
        wait_until(lambda: not self._has_processes(), "the end of the server's processes")

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stall_file.unlink(missing_ok=True)
            self.signal_all(signal.SIGCONT)
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.signal_all(signal.SIGKILL)
                self._process.wait()

    def _has_processes(self) -> bool:
        named = str(self.data).encode()
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and named in (entry / "cmdline").read_bytes():
                    return True
        return False

    def _run(self, program: str, *args: str) -> None:
        done = run_as(self._account, self._programs / program, *args)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}")


class Cluster:
    """A primary and its standby. After a promotion they change places."""

    def __init__(self, folder: Path) -> None:
        config = EmbeddedConfig(folder / "programs")
        account = privilege.choose(None, folder)
        self._programs, _ = binaries.reachable(config, binaries.find(), account)
        self._folder, self._account, self._count = folder, account, 0
        self.preload = compile_stall(folder)
        self.primary = self._server()
        self.primary.create()
        self.standby: Postgres | None = None

    def attach_standby(self) -> None:
        """Add a synchronous standby, which has every commit that a client got an answer for."""
        standby = self._server()
        standby.copy_of(self.primary)
        attached = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
        wait_until(lambda: self.primary.rows(attached), "the standby")
        self.standby = standby
        self.primary.set("synchronous_standby_names", STANDBY)

    def detach_standby(self) -> None:
        self.primary.set("synchronous_standby_names", "")
        if self.standby is not None:
            self.standby.end()
            shutil.rmtree(self.standby.folder, ignore_errors=True)
            self.standby = None

    def fail_over(self) -> Postgres:
        """Kill the primary and promote the standby. Return the new primary."""
        assert self.standby is not None
        old, new = self.primary, self.standby
        old.kill()
        new.promote()
        self.primary, self.standby = new, None
        shutil.rmtree(old.folder, ignore_errors=True)
        return new

    def end(self) -> None:
        for server in (self.standby, self.primary):
            if server is not None:
                server.end()

    def _server(self) -> Postgres:
        self._count += 1
        return Postgres(self._folder / f"postgres{self._count}", self._programs, self._account, self.preload)


@contextmanager
def locked(server: Postgres, tables: str) -> Iterator[None]:
    with psycopg.connect(server.url()) as connection:
        connection.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()


@contextmanager
def no_connections_left(server: Postgres) -> Iterator[None]:
    """Take every connection, the reserved ones too."""
    taken: list[psycopg.Connection[Any]] = []
    url = server.url(database="postgres")
    server.end_sessions()
    try:
        with suppress(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(url))
        yield
    finally:
        for each in taken:
            each.close()


def compile_stall(folder: Path) -> Path | None:
    """Compile the library that stalls the disk. Return None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "disk_stall.so"
    source = Path(__file__).with_name("disk_stall.c")
    subprocess.run((compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"), check=True)
    library.chmod(0o755)
    return library


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, IndexError):
            if (
                entry.name.isdigit()
                and int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1]) == pid
            ):
                found.append(int(entry.name))
    return found
