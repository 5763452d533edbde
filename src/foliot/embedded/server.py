"""Start the private PostgreSQL, notice when it dies, and stop it completely."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import binaries, cluster, launch, locations, orphans
from foliot.embedded.binaries import Binaries
from foliot.embedded.config import DATABASE, OWNER, EmbeddedConfig
from foliot.embedded.failures import cannot_write
from foliot.embedded.files import LogFile
from foliot.embedded.launch import LaunchedServer
from foliot.embedded.locations import ClusterLocation
from foliot.embedded.locks import DirectoryLock

TRIM_EVERY = 60.0  # seconds
HOST = "127.0.0.1"


def start(config: EmbeddedConfig) -> EmbeddedServer:
    """Create the database on the first start, recover it after a crash, and return once it accepts connections.

    Call it from the main thread: the kernel ends the server with the thread that started it.
    """
    if not sys.platform.startswith("linux"):
        raise DatabaseUnavailable(
            "The private PostgreSQL runs on Linux only.",
            hint="Use a running server with FOLIOT_DATABASE_URL.",
        )
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("start the embedded server from the main thread; it would end with this one")
    found = binaries.find(config.bindir)
    lock = DirectoryLock.take(config.data_dir, "postgres.lock")
    try:
        location = locations.locate_cluster(config)
        usable, copied = binaries.reachable(config, found, location.account)
        stopped = orphans.clear(location.cluster)
        location = cluster.prepare(location, usable)
        launched, squeezed = launch.launch(config, location, usable)
    except OSError as error:
        lock.release()
        raise cannot_write(config.data_dir, error) from error
    except BaseException:
        lock.release()
        raise
    notes = (*location.notes, *copied, *((stopped,) if stopped else ()), *squeezed)
    return EmbeddedServer(location, usable, launched, lock, notes)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A private PostgreSQL that another process has started."""

    owner_url: str
    bindir: Path


def find_running(config: EmbeddedConfig) -> RunningServer | None:
    """Return the running server of the data directory, or None. Only the user of the directory can read what it takes."""
    record = locations.ClusterRecord.load(config.data_dir.absolute())
    if record is None:
        return None
    port = launch.ready_port(record.home(config.data_dir.absolute()) / "data")
    if port is None:
        return None
    return RunningServer(_url(OWNER, record.password, port), binaries.find(config.bindir).bindir)


def _url(user: str, password: str, port: int, database: str = DATABASE) -> str:
    return f"postgresql://{quote(user, safe='')}:{quote(password, safe='')}@{HOST}:{port}/{quote(database, safe='')}"


class EmbeddedServer:
    """A running private PostgreSQL. `exited` is set when it has ended for any reason."""

    host = HOST

    def __init__(
        self,
        location: ClusterLocation,
        programs: Binaries,
        launched: LaunchedServer,
        lock: DirectoryLock,
        notes: tuple[str, ...],
    ) -> None:
        self.notes = notes  # for the user
        self.data_dir = location.data_dir
        self.bindir = programs.bindir
        self.version = programs.version
        self.port = launched.port
        self.pid = launched.process.pid
        self.exited = launched.exited
        self._location = location
        self._process = launched.process
        self._lock = lock
        self._stopping = threading.Lock()
        self._is_stopping = False
        threading.Thread(target=self._keep_log_short, name="postgres-log", daemon=True).start()

    @property
    def owner_url(self) -> str:
        return self.url(OWNER, self._location.record.password)

    @property
    def sockets(self) -> Path | None:
        return self._location.sockets

    @property
    def cluster(self) -> Path:
        return self._location.cluster

    def url(self, user: str, password: str, database: str = DATABASE) -> str:
        return _url(user, password, self.port, database)

    def is_alive(self) -> bool:
        return not self.exited.is_set()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the exit code (negative for a signal); return None when it outlives `timeout`."""
        return self._process.returncode if self.exited.wait(timeout) else None

    def on_lost(self, callback: Callable[[int], None]) -> None:
        """Call `callback` with the exit code, from a thread of its own, if the server ends without `stop`."""

        def watch() -> None:
            self.exited.wait()
            if not self._is_stopping:
                callback(self._process.returncode)

        threading.Thread(target=watch, name="postgres-watch", daemon=True).start()

    def stop(self, timeout: float = 8.0) -> None:
        """Stop it within `timeout`: by a fast shutdown, then an immediate one, then SIGKILL, which loses nothing committed.

        It may be called twice, from any thread, and after the server died.
        """
        until = time.monotonic() + timeout
        self._is_stopping = True
        with self._stopping:
            for step, kept_back in ((signal.SIGINT, 0.4), (signal.SIGQUIT, 0.15), (signal.SIGKILL, 0.0)):
                if self.is_alive():
                    self._process.send_signal(step)
                    # Stopped children would keep it waiting, and get no signal until they are woken.
                    orphans.signal_all(self.cluster, step if step == signal.SIGKILL else signal.SIGCONT)
                    self.exited.wait(max(0.1, until - kept_back * timeout - time.monotonic()))
            if self.wait() != 0:
                orphans.clear(self.cluster)
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _keep_log_short(self) -> None:
        log = LogFile(self._location.log)
        while not self.exited.wait(TRIM_EVERY):
            log.trim()

    def __repr__(self) -> str:
        return f"<EmbeddedServer {self.version} pid={self.pid} port={self.port} in {self.cluster}>"
