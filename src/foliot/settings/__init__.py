"""Settings: one pydantic model (`model.py`), read from flags, environment and foliot.toml (`sources.py`).

The models are imported on first use: `foliot --help` needs only `declarations.py`, and a client only `client.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foliot.settings.declarations import (
    ADDRESS_FILE,
    FILE_SUFFIX,
    FLAGS,
    OUTPUTS,
    PREFIX,
    ROLES,
    SettingProblem,
    SettingsError,
    flag_name,
    passwords_in,
    without_password,
)

if TYPE_CHECKING:
    from foliot.settings.client import ClientSettings
    from foliot.settings.fields import Setting
    from foliot.settings.model import BY_NAME, TABLE, Settings, format_value
    from foliot.settings.sources import load, load_client

__all__ = [
    "ADDRESS_FILE",
    "BY_NAME",
    "FILE_SUFFIX",
    "FLAGS",
    "OUTPUTS",
    "PREFIX",
    "ROLES",
    "TABLE",
    "ClientSettings",
    "Setting",
    "SettingProblem",
    "Settings",
    "SettingsError",
    "flag_name",
    "format_value",
    "load",
    "load_client",
    "passwords_in",
    "without_password",
]
_HOMES = {"load": "sources", "load_client": "sources", "ClientSettings": "client", "Setting": "fields"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foliot.settings.{_HOMES.get(name, 'model')}"), name)
