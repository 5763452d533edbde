"""Settings: one pydantic model (`model.py`), read from flags, environment and foliot.toml (`sources.py`).

The model is imported on first use: pydantic-settings doubles the start-up time of `foliot --help`, which needs only `declarations.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foliot.settings.declarations import (
    ADDRESS_FILE,
    FILE_SUFFIX,
    FLAGS,
    PREFIX,
    ROLES,
    SettingProblem,
    SettingsError,
    flag_name,
    passwords_in,
    without_password,
)

if TYPE_CHECKING:
    from foliot.settings.model import BY_NAME, TABLE, Setting, Settings, format_value
    from foliot.settings.sources import load

__all__ = [
    "ADDRESS_FILE",
    "BY_NAME",
    "FILE_SUFFIX",
    "FLAGS",
    "PREFIX",
    "ROLES",
    "TABLE",
    "Setting",
    "SettingProblem",
    "Settings",
    "SettingsError",
    "flag_name",
    "format_value",
    "load",
    "passwords_in",
    "without_password",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(
        import_module("foliot.settings.sources" if name == "load" else "foliot.settings.model"), name
    )
