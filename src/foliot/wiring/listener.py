"""The address that a server listens on: its socket, and the file that tells clients in the same folder about it."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

from foliot.domain.errors import Conflict, FoliotError, Invalid
from foliot.settings import ADDRESS_FILE

log = logging.getLogger(__name__)


@contextmanager
def listener(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the socket before anything else starts, so that a busy port costs no PostgreSQL. Listening begins later."""
    bound = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise cannot_listen(host, port, error) from error
    with bound:
        yield bound


def cannot_listen(host: str, port: int, error: OSError) -> FoliotError:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"Port {port} on {host} is taken by another program.",
            hint="Is Foliot running already? Else choose another with --port or FOLIOT_PORT; 0 takes a free one.",
        )
    if error.errno == errno.EACCES:
        return Invalid(
            f"This user may not listen on port {port}.",
            hint="Ports below 1024 belong to root: choose a higher one.",
        )
    return Invalid(
        f"Foliot cannot listen on host {host!r}: {error.strerror}.",
        hint="Use 127.0.0.1, 0.0.0.0 or an address of this machine.",
    )


def url_of(listening: socket.socket) -> str:
    """Return the URL at which this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "127.0.0.1" if listening.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def publish_address(data_dir: Path, url: str) -> Iterator[None]:
    """Write the server's URL into the data directory, for clients in that folder, as long as the block lasts.

    The file is locked meanwhile. Clients ignore an unlocked one: its server was killed, and another program may have its port.
    """
    path = data_dir / ADDRESS_FILE
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        log.debug("address.not_published", extra={"reason": str(error)})
        yield
        return
    try:
        if _try_lock(file):
            os.ftruncate(file, 0)
            os.write(file, f"{url}\n".encode())
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()
        else:
            yield  # another server with this directory was first; both use a database of the user's
    finally:
        os.close(file)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
