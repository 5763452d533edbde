"""What holds the commands of this machine, from its settings or from the orders that were made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from foliot.domain.errors import Invalid
from foliot.handlers.sandbox import Confines, identity_of

MIB = 1024 * 1024


class Confining(Protocol):
    @property
    def command_user(self) -> str | None: ...
    @property
    def command_umask(self) -> int | None: ...
    @property
    def command_file_size(self) -> int: ...
    @property
    def command_processes(self) -> int: ...


def confines_of(given: Confining) -> Confines:
    """Raises Invalid where the user is not there, or this process cannot become it. 0 is no limit."""
    return Confines(
        identity_of(given.command_user),
        given.command_umask,
        given.command_file_size * MIB or None,
        given.command_processes or None,
    )


def refuse_the_databases_user(confines: Confines, cluster: Path) -> None:
    """Who has the user of a database has the database: its files, its memory, and the signals that stop it."""
    user = confines.user
    if user is not None and user.uid == cluster.stat().st_uid:
        raise Invalid(
            f"Commands are to run as {user.name or user.uid}, and so does the private PostgreSQL: they could read and stop it.",
            hint="Name a user of their own in FOLIOT_COMMAND_USER, or use a database of your own with FOLIOT_DATABASE_URL.",
        )
