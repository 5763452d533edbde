"""Where a run must go when not every worker will do: to a host, or to whichever host has a server instance at that moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TargetKind(StrEnum):
    HOST = "host"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Target:
    """By name: an instance that moves to another host takes the runs that wait for it along."""

    kind: TargetKind
    name: str

    @property
    def text(self) -> str:
        """As the engine's tables have it."""
        return f"{self.kind.value}/{self.name}"

    @property
    def words(self) -> str:
        return f'host "{self.name}"' if self.kind is TargetKind.HOST else f'server "{self.name}"'


def target_of(text: str) -> Target:
    kind, _, name = text.partition("/")
    return Target(TargetKind(kind), name)
