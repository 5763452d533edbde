"""Settings: one table of them (`table.py`, from `serving.py`, `working.py` and `bounds.py`), the kinds of values (`kinds.py`), and how they are loaded (`loading.py`)."""

from __future__ import annotations

from foliot.settings.loading import FILE_SUFFIX, Problem, SettingsError, load, shown
from foliot.settings.rows import PREFIX, Setting
from foliot.settings.serving import ADDRESS_FILE, ROLES
from foliot.settings.showing import passwords_in, without_password
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
