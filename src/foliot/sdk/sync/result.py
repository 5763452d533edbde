"""What came of a sync."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foliot.sdk.errors import Invalid


@dataclass(frozen=True, slots=True)
class Synced:
    """Names of jobs. `gone` are there, of this app, and no longer in its code; `refused` says why."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def checked(self) -> Synced:
        if self.refused:
            told = "\n  ".join(f"{name}: {why}" for name, why in self.refused.items())
            raise Invalid("The server refused some jobs of the app.", code="invalid", hint=told)
        return self
