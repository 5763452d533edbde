"""Making sure that what was written outlives a power cut."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)


def sync_folder(folder: Path) -> None:
    """A rename is durable once its folder is."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


def sync_file_system(folder: Path) -> None:
    """Everything on the file system that holds `folder`; Linux 5.8 and newer report what could not be written."""
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
