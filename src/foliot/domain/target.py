"""The target of a run that not every worker may take: a host, or the host that has a server instance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TargetKind(StrEnum):
    HOST = "host"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Target:
    """A target by name: when an instance moves to another host, waiting runs follow it."""

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
