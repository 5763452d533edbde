"""Settings: one table of them (`table.py`, from `serving.py`, `worker.py` and `bounds.py`), the kinds of values (`kinds.py`), and how they are loaded (`loading.py`)."""

from __future__ import annotations

from foliot.settings.load import FILE_SUFFIX, Problem, SettingsError, load, shown
from foliot.settings.passwords import passwords_in, without_password
from foliot.settings.rows import PREFIX, Setting
from foliot.settings.server import ADDRESS_FILE, ROLES
from foliot.settings.table import BY_NAME, TABLE, Settings

__all__ = [
    "ADDRESS_FILE",
    "BY_NAME",
    "FILE_SUFFIX",
    "PREFIX",
    "ROLES",
    "TABLE",
    "Problem",
    "Setting",
    "Settings",
    "SettingsError",
    "load",
    "passwords_in",
    "shown",
    "without_password",
]
