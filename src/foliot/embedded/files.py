"""Durable writes, and a log file of bounded size with one older generation beside it."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)


def sync_folder(folder: Path) -> None:
    """Make a rename durable by syncing its folder."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


def sync_file_system(folder: Path) -> None:
    """Sync the file system that holds `folder`; Linux 5.8 and newer report write errors."""
    with _opened(folder) as descriptor:
        if LIBC.syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


LARGEST = 10 * 2**20


@dataclass(frozen=True, slots=True)
class LogFile:
    path: Path

    def open(self) -> int:
        """Open for appending: the server keeps writing at the end after `trim` has cut the file."""
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def since(self, offset: int) -> str:
        """Return the text after `offset`, at most the last 64 KiB."""
        with self.path.open("rb") as file:
            file.seek(max(offset, self.size() - 2**16))
            return file.read().decode(errors="replace")

    def trim(self, largest: int = LARGEST) -> None:
        """Copy and truncate: the server holds the file open and would follow a renamed one."""
        if self.size() > largest:
            older = self.path.with_suffix(".log.1")
            try:
                older.touch(mode=0o600)
                shutil.copyfile(self.path, older)
            except OSError:  # on a full disk the log can be dropped
                older.unlink(missing_ok=True)
            os.truncate(self.path, 0)
