"""One process per data directory. The kernel releases a lock when its holder dies, even by kill -9."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliot.domain.errors import Conflict, DatabaseUnavailable
from foliot.embedded.failures import cannot_write
from foliot.embedded.privilege import name_of


@contextmanager
def serve_lock(data_dir: Path) -> Iterator[None]:
    """Hold the lock of `foliot serve`; a second serve on the directory is refused."""
    lock = DirectoryLock.take(data_dir, "serve.lock")
    try:
        yield
    finally:
        lock.release()


class DirectoryLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, data_dir: Path, name: str) -> DirectoryLock:
        make_data_dir(data_dir)
        try:
            descriptor = os.open(data_dir / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise cannot_write(data_dir, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise Conflict(
                f"The data directory {data_dir.absolute()} is in use by another Foliot (pid {holder}).",
                hint="Stop that one first, or give this one a directory of its own with FOLIOT_DATA_DIR.",
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise cannot_write(data_dir, error) from error
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock. The file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def make_data_dir(data_dir: Path) -> None:
    """Make the directory for this user alone. Root's is 0711, since PostgreSQL never runs as root; the files inside are 0600."""
    if data_dir.is_dir():
        _refuse_others(data_dir)
        return
    try:
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        data_dir.mkdir(mode=0o700)
        if os.geteuid() == 0:
            data_dir.chmod(0o711)
    except FileExistsError:
        if not data_dir.is_dir():
            raise cannot_write(
                data_dir, NotADirectoryError(20, "a file of that name is in the way")
            ) from None
    except OSError as error:
        raise cannot_write(data_dir, error) from error


def _refuse_others(data_dir: Path) -> None:
    """Refuse, as root, a directory that others can write: root acts on the files inside, and gives folders away."""
    if os.geteuid() != 0:
        return  # for other users the kernel checks
    found = data_dir.stat()
    if found.st_uid != 0:
        owner = name_of(found.st_uid)
        raise DatabaseUnavailable(
            f"The data directory {data_dir} belongs to user {owner}, and this is root.",
            hint=f"Run Foliot as {owner}, or give root a directory of its own with FOLIOT_DATA_DIR. "
            f"If you trust all that is in it: chown root {data_dir}",
        )
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != 0):
        raise DatabaseUnavailable(
            f"Other users may write to the data directory {data_dir}, and this is root.",
            hint=f"If you trust all that is in it: chmod go-w {data_dir}",
        )
