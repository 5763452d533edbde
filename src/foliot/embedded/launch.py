"""Launch PostgreSQL as a child process that ends with this one, and wait until it is ready.

Why: docs/decisions/002-private-postgresql-own-launcher.md
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import orphans
from foliot.embedded.binaries import Binaries
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.failures import server_failed
from foliot.embedded.files import LogFile
from foliot.embedded.locations import ClusterLocation
from foliot.embedded.privilege import end_with_us, popen_options

SMALLER = "16MB"  # of shared buffers, where the machine has too little memory
OUR_PORTS = range(20_000, 32_768)
ENOUGH_SHARED_MEMORY = (
    256 * 2**20
)  # bytes of /dev/shm that parallel queries can live with; containers often give 64 MB


@dataclass(frozen=True, slots=True)
class LaunchedServer:
    process: subprocess.Popen[bytes]
    port: int
    exited: threading.Event


def launch(
    config: EmbeddedConfig, location: ClusterLocation, binaries: Binaries
) -> tuple[LaunchedServer, tuple[str, ...]]:
    """Launch a server that accepts connections. Retry with another port, or less memory, where that was the problem."""
    log = LogFile(location.log)
    log.trim()
    deadline = time.monotonic() + config.start_timeout
    port, buffers = config.port or free_port(), config.shared_buffers
    for _ in range(8):
        before = log.size()
        launched = _spawn(location, _argv(config, location, binaries, port, buffers), port, log)
        try:
            ready = _wait_ready(launched, location.cluster, deadline)
        except BaseException:
            _abandon(launched, location.cluster)
            raise
        if ready:
            less = (
                f"PostgreSQL got {buffers} of shared buffers instead of {config.shared_buffers}; memory is short.",
            )
            return launched, less if buffers != config.shared_buffers else ()
        said = log.since(before)
        if launched.exited.is_set() and "Address already in use" in said:
            port = free_port()
        elif (
            launched.exited.is_set()
            and "shared memory" in said
            and "Cannot allocate memory" in said
            and buffers != SMALLER
        ):
            buffers = SMALLER
        else:
            break
    if not launched.exited.is_set():
        _abandon(launched, location.cluster)
        raise DatabaseUnavailable(
            f"PostgreSQL was not ready within {config.start_timeout:.0f} s. Its log is {location.log}.",
            hint="After a crash it may still have been replaying its log; allow it more time, or see why the disk is slow.",
        )
    raise server_failed(f"PostgreSQL ended while starting (its log is {location.log})", said, location.home)


def free_port() -> int:
    """Return a port below the ephemeral range, so that no outgoing connection takes it while the server restarts."""
    for _ in range(50):
        with socket.socket() as probe, suppress(OSError):
            port = secrets.choice(OUR_PORTS)
            probe.bind(("127.0.0.1", port))
            return port
    raise DatabaseUnavailable(
        f"No free port between {OUR_PORTS.start} and {OUR_PORTS.stop} was found for PostgreSQL.",
        hint="See with `ss -ltn` what listens there.",
    )


def _argv(
    config: EmbeddedConfig, location: ClusterLocation, binaries: Binaries, port: int, buffers: str
) -> tuple[str, ...]:
    # Quoted, since the setting is a list and a folder's name may hold a comma.
    sockets = '"{}"'.format(str(location.sockets).replace('"', '""')) if location.sockets else ""
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": sockets,
        "unix_socket_permissions": "0700",
        "shared_buffers": buffers,
        "max_connections": str(config.max_connections),
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_destination": "stderr",
        "logging_collector": "off",
        "log_line_prefix": "%m [%p] %u ",
        "log_checkpoints": "off",
        "cluster_name": "foliot",
        "recovery_init_sync_method": "syncfs",  # after a crash: one call instead of a thousand
    }
    if _shared_memory() < ENOUGH_SHARED_MEMORY:
        settings["dynamic_shared_memory_type"] = "mmap"
    pairs = (
        word
        for name, value in (settings | dict(config.settings)).items()
        for word in ("-c", f"{name}={value}")
    )
    return (str(binaries / "postgres"), "-D", str(location.cluster), *pairs)


def _shared_memory() -> int:
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  # only looked at
    except OSError:
        return 0
    return found.f_frsize * found.f_blocks


def _spawn(location: ClusterLocation, argv: tuple[str, ...], port: int, log: LogFile) -> LaunchedServer:
    """Start it in a session of its own: a Ctrl-C in the terminal must reach Foliot first, which then stops the server."""
    said = log.open()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of preexec_fn beside threads; ours makes two system calls and takes no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                preexec_fn=end_with_us(signal.SIGINT),  # noqa: PLW1509  # a fast shutdown
                **popen_options(location.account),
            )
    finally:
        os.close(said)
    exited = threading.Event()

    def reap() -> None:
        process.wait()
        exited.set()

    threading.Thread(target=reap, name="postgres-reap", daemon=True).start()
    return LaunchedServer(process, port, exited)


def _wait_ready(launched: LaunchedServer, cluster: Path, deadline: float) -> bool:
    while time.monotonic() < deadline:
        if _status(cluster, launched.process.pid) == "ready":
            return True
        if launched.exited.wait(0.01):
            return False
    return False


def ready_port(cluster: Path) -> int | None:
    """Return the port of the server that runs on the cluster and accepts connections."""
    try:
        lines = (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        os.kill(int(lines[0]), 0)
    except PermissionError:
        pass  # the process of another user, as where root lends an account to the server
    except (OSError, ValueError, IndexError):
        return None
    return int(lines[3]) if len(lines) > 7 and lines[7].strip() == "ready" else None


def _status(cluster: Path, pid: int) -> str | None:
    """Read the status that the postmaster writes: `starting`, `ready`, `stopping`. Ignore that of an older server."""
    try:
        lines = (cluster / "postmaster.pid").read_bytes().splitlines()
    except OSError:
        return None
    return lines[7].decode().strip() if len(lines) > 7 and int(lines[0]) == pid else None


def _abandon(launched: LaunchedServer, cluster: Path) -> None:
    launched.process.send_signal(signal.SIGQUIT)
    if not launched.exited.wait(6.0):
        launched.process.kill()
        launched.exited.wait()
    orphans.clear(cluster)
