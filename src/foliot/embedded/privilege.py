"""The user that PostgreSQL runs as. It refuses root, so root lends it an unprivileged account; other users run it as themselves.

Why: docs/decisions/003-private-postgresql-files-and-owner.md
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foliot.domain.errors import DatabaseUnavailable

USUAL_ACCOUNTS = ("nobody", "postgres")
# The server gets nothing of the caller's environment: PGDATA, PGPORT or a locale would change its behaviour.
CLEAN = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded here, because little may be done between fork and exec


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int

    @property
    def is_lent(self) -> bool:
        return self.uid != os.geteuid()


def choose(wanted: str | None, home: Path) -> Account:
    """Return the caller's account; for root the given one, else the owner of `home`, else nobody."""
    if os.geteuid() != 0:
        return Account(name_of(os.geteuid()), os.geteuid(), os.getegid())
    account = _named(wanted) if wanted else _owner(home) or _usual()
    if (tried := run_as(account, "/bin/sh", "-c", ":")).returncode:
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and this root may not become user {account.name}: {tried.stdout.strip()}.",
            hint="Run Foliot as an ordinary user, or use a server of your own with FOLIOT_DATABASE_URL.",
        )
    return account


def name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def popen_options(account: Account) -> dict[str, Any]:
    """Return options for subprocess: a clean environment, private files, and a folder that every account may enter."""
    options: dict[str, Any] = {"env": CLEAN, "cwd": "/", "umask": 0o077}
    if account.is_lent:
        options |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    return options


def end_with_us(step: signal.Signals) -> Callable[[], None]:
    """Return a preexec_fn: the kernel sends `step` when the thread that starts the process dies, even by kill -9."""
    parent = os.getpid()

    def request() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, step, 0, 0, 0)
        if os.getppid() != parent:  # it died before the request
            os._exit(1)

    return request


def run_as(account: Account, *argv: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, stdout and stderr together in `stdout`. One that cannot be started counts as failed."""
    try:
        return subprocess.run(
            argv,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=end_with_us(signal.SIGKILL),
            **popen_options(account),
        )
    except (OSError, subprocess.SubprocessError) as error:
        return subprocess.CompletedProcess(argv, 126, f"{argv[0]}: {error}")


def may_use(account: Account, folder: Path) -> bool:
    """Return whether the account can use the folder, by trying: mode bits do not show access lists, mounts and network file systems."""
    return (
        run_as(account, "/bin/sh", "-c", 'cd -- "$1" && test -r . && test -w .', "sh", folder).returncode == 0
    )


def hand_over(folder: Path, account: Account) -> None:
    """Give `folder` and all inside to `account`. Links are not followed. A hard link is refused: it may name another user's file."""
    for where, folders, files, inside in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=inside, follow_symlinks=False)
            if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                raise DatabaseUnavailable(
                    f"{Path(where, name)} is also a file elsewhere (a hard link), so Foliot does not give it to user {account.name}.",
                    hint=f"If it belongs there, replace it by a copy, or: chown -R {account.name} {folder}",
                )
            os.chown(name, account.uid, account.gid, dir_fd=inside, follow_symlinks=False)
    os.chown(folder, account.uid, account.gid, follow_symlinks=False)


def _owner(home: Path) -> Account | None:
    try:
        found = home.lstat()
    except OSError:
        return None
    return Account(name_of(found.st_uid), found.st_uid, found.st_gid) if found.st_uid else None


def _usual() -> Account:
    for name in USUAL_ACCOUNTS:
        try:
            return _named(name)
        except DatabaseUnavailable:
            continue
    raise DatabaseUnavailable(
        f"PostgreSQL does not run as root, and this machine has no user {' or '.join(USUAL_ACCOUNTS)}.",
        hint="Run Foliot as an ordinary user, or use a server of your own with FOLIOT_DATABASE_URL.",
    )


def _named(name: str) -> Account:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise DatabaseUnavailable(
            f"There is no user {name!r} on this machine to run PostgreSQL as.", hint="Name another user."
        ) from None
    if entry.pw_uid == 0:
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, which {name!r} is.",
            hint="Name a user without rights, such as nobody.",
        )
    return Account(name, entry.pw_uid, entry.pw_gid)
