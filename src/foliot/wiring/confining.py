"""What holds the commands of this machine, from its settings or from the orders that were made of them."""

from __future__ import annotations

from typing import Protocol

from foliot.handlers.confines import Confines, identity_of

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
