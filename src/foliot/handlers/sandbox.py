"""The sandbox of commands: another user than the worker's, where the worker is root, and limits that the kernel enforces.

Why: docs/decisions/304-commands-are-off-by-default.md
"""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import dataclass
from typing import Any

from foliot.domain.errors import Invalid


@dataclass(frozen=True, slots=True)
class UserIdentity:
    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str | None = None  # None for a number that the machine has no name for
    home: str = "/"

    @property
    def variables(self) -> dict[str, str]:
        named = {} if self.name is None else {"USER": self.name, "LOGNAME": self.name}
        return {"HOME": self.home, **named}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Restrictions of commands; None leaves what the worker has."""

    user: UserIdentity | None = None
    umask: int | None = None
    file_size: int | None = None  # bytes of any file that a command writes
    processes: int | None = None  # of that user, all its commands together

    @property
    def for_supervisor(self) -> dict[str, Any]:
        user = self.user
        return {
            "user": None if user is None else (user.uid, user.gid, user.groups),
            "umask": self.umask,
            "file_size": self.file_size,
            "user_processes": None if user is None else self.processes,
        }


def resolve_user(name: str | None) -> UserIdentity | None:
    """Look up `user`, `user:group` or numbers. Return None without a name, and for the user that this process runs as without root's rights.

    A user without a group has all of its groups; a named group is the only one.
    """
    if name is None:
        return None
    user, _, group = name.partition(":")
    account = _account(user)
    if account is None and not (user.isdecimal() and group):
        raise _unknown("user", user, "Name one that this machine has, or give numbers as uid:gid.")
    uid = int(user) if account is None else account.pw_uid
    gid = _gid(group) if group else account.pw_gid if account is not None else uid
    if os.geteuid() != 0:
        if uid == os.geteuid():
            return None
        raise Invalid(
            f"Commands are to run as {name}, but this worker does not run as root and cannot become another user.",
            hint="Start it as root, or as that user and without FOLIOT_COMMAND_USER.",
        )
    if account is None:
        return UserIdentity(uid, gid, (gid,))
    groups = (gid,) if group else tuple(os.getgrouplist(account.pw_name, gid))
    home = account.pw_dir if os.path.isdir(account.pw_dir) else "/"  # noqa: PTH112  # os is here for the rest
    return UserIdentity(uid, gid, groups, account.pw_name, home)


def _account(user: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        return None


def _gid(group: str) -> int:
    try:
        return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError:
        raise _unknown("group", group, "Name one that this machine has, or give its number.") from None


def _unknown(kind: str, name: str, hint: str) -> Invalid:
    return Invalid(f"FOLIOT_COMMAND_USER: there is no {kind} {name!r} here.", hint=hint)
