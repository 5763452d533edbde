"""Errors of the disk and the server, each with a hint."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
OTHER_WAYS = (
    "Choose another folder with FOLIOT_DATA_DIR, or use a server of your own with FOLIOT_DATABASE_URL."
)


def cannot_write(path: Path, error: OSError) -> DatabaseUnavailable:
    if error.errno in DISK_FULL:
        return disk_full(path, error.strerror or "no space left")
    reason = error.strerror or str(error)
    return DatabaseUnavailable(
        f"Foliot cannot write to its data directory {path}: {reason}.", hint=OTHER_WAYS
    )


def server_failed(what: str, said: str, home: Path) -> DatabaseUnavailable:
    """Build an error from the output of a program; its last lines explain most."""
    for code in DISK_FULL:
        if os.strerror(code) in said:
            return disk_full(home, os.strerror(code))
    lines = [line for line in said.splitlines() if line.strip()]
    shown = "\n".join(f"    {line}" for line in lines[-12:]) or "    (it printed nothing)"
    nameless = "could not look up effective user ID" in said  # as in containers that make up a user id
    hint = "PostgreSQL wants its user to have a name: add this user id to /etc/passwd, or set FOLIOT_DATABASE_URL."
    return DatabaseUnavailable(f"{what}. Its last output:\n{shown}", hint=hint if nameless else OTHER_WAYS)


def disk_full(path: Path, reason: str) -> DatabaseUnavailable:
    mount, free = file_system_of(path)
    return DatabaseUnavailable(
        f"No space for the database in {path}: {reason}. "
        f"The file system {mount} has {free / 2**20:.0f} MiB free; a new database needs about 80.",
        hint=f"Free some space on {mount} (nothing that was committed is lost) or raise the quota or `ulimit -f`. "
        + OTHER_WAYS,
    )


def file_system_of(path: Path) -> tuple[Path, int]:
    """Return the mount point of `path`, which need not exist yet, and its free bytes."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    there = there.resolve()
    mount = next(folder for folder in (there, *there.parents) if folder.is_mount())
    return mount, shutil.disk_usage(there).free
