"""One row of the table of settings, and how a field becomes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foliot.settings.kinds import Kind

PREFIX = "FOLIOT_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    kind: Kind
    default: Any
    about: str
    unit: str | None
    secret: bool
    in_toml: bool

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Secrets have none: other users of a machine can read command lines."""
        return None if self.secret else "--" + self.name.replace("_", "-")


def as_row(
    kind: Kind, about: str, *, unit: str | None = None, secret: bool = False, in_toml: bool = True
) -> dict[str, Any]:
    return {"kind": kind, "about": about, "unit": unit, "secret": secret, "in_toml": in_toml}
