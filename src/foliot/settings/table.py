"""Every setting, once. The fields of `Settings`, which come from three files by what they are about, are the table from which
environment names, keys of `foliot.toml`, command-line flags and docs/reference/settings.md are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from urllib.parse import unquote

from foliot.settings.bounds import Bounds
from foliot.settings.passwords import passwords_in
from foliot.settings.rows import Setting
from foliot.settings.server import Serving
from foliot.settings.worker import Working


@dataclass(frozen=True, kw_only=True)
class Settings(Bounds, Working, Serving):
    """All settings with their values; `origins` says where each came from. They stand in the order of the bases from the last on."""

    origins: Mapping[str, str] = field(default_factory=dict)

    def secrets(self) -> tuple[str, ...]:
        """The values that may never be printed: whole, and the password inside an address."""
        values = [getattr(self, row.name) for row in TABLE if row.secret]
        whole = [value for value in values if value is not None]
        inside = [found for value in whole for found in passwords_in(value)]
        return (*whole, *inside, *(unquote(each) for each in inside))


TABLE: tuple[Setting, ...] = tuple(
    Setting(name=each.name, default=each.default, **each.metadata)
    for each in fields(Settings)
    if each.metadata
)
BY_NAME: Mapping[str, Setting] = {row.name: row for row in TABLE}
