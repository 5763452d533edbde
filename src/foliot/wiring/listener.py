"""Where a server listens, kept in its data directory for the clients of that folder while it does."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foliot.settings import ADDRESS_FILE

log = logging.getLogger(__name__)


@contextmanager
def publish_address(data_dir: Path, url: str) -> Iterator[None]:
    """Locked for as long as it holds: what a killed server leaves behind is seen to be nobody's, and its port may be anybody's."""
    path = data_dir / ADDRESS_FILE
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        log.debug("address.not_kept", extra={"reason": str(error)})
        yield
        return
    try:
        if _is_ours(file):
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


def _is_ours(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
