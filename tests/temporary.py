"""Folders for tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foliot.testing.database import memory_folder


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder in memory, reachable for the user that PostgreSQL runs as, and gone afterwards."""
    with tempfile.TemporaryDirectory(
        prefix="foliot-test-", dir=memory_folder(), ignore_cleanup_errors=True
    ) as folder:
        Path(folder).chmod(0o711)
        yield Path(folder).resolve()
