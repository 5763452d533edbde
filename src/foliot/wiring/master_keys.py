"""The master keys of this process: from FOLIOT_MASTER_KEY, or from the file `master.key` in the data directory."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from foliot.domain.errors import Invalid
from foliot.embedded.failures import cannot_write
from foliot.embedded.files import sync_folder
from foliot.embedded.locks import make_data_dir
from foliot.services.secrets.vault import FixedKeys, KeySource, MasterKey, Vault, read_keys
from foliot.settings import Settings

log = logging.getLogger(__name__)
FILE = "master.key"
HEAD = "# Master keys of Foliot, the current one first. This file and the database together reveal all secrets; without it, they are lost.\n"


class KeyFile:
    """One key a line. It is read again for an unknown key: another process may have added one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_warned = False

    def read(self) -> Sequence[MasterKey]:
        try:
            with self._path.open(encoding="ascii") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read()
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise Invalid(
                f"The master key in {self._path} cannot be read: {why}.",
                hint="It must belong to the user that Foliot runs as.",
            ) from error
        if mode & 0o077 and not self._is_warned:
            self._is_warned = True
            log.warning(
                "master_key.exposed", extra={"path": self._path, "mode": f"{mode:o}", "advice": "chmod 600"}
            )
        return read_keys(text, str(self._path))

    def may_add(self) -> None:
        """Allow it. A write error shows when the key is added."""

    def add(self, key: MasterKey) -> None:
        """Write a new file and rename it: the keys in use are never missing."""
        keys = (key, *self.read())
        draft = self._path.with_suffix(".key.new")
        make_data_dir(self._path.parent)
        try:
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(HEAD + "".join(f"{each.text}\n" for each in keys))
                file.flush()
                os.fsync(descriptor)
            draft.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        log.warning(
            "master_key.stored",
            extra={"id": key.id, "path": self._path, "advice": "back it up, apart from the database"},
        )


def given_keys(settings: Settings) -> tuple[str, ...]:
    """Return the keys of the setting as text; none where the file is used."""
    if settings.master_key is None:
        return ()
    return tuple(key.text for key in read_keys(settings.master_key, "FOLIOT_MASTER_KEY"))


def vault_of(texts: Sequence[str], data_dir: Path) -> Vault:
    """Return a vault with these keys or, without any, with those of the file."""
    source: KeySource = KeyFile(data_dir / FILE)
    if texts:
        source = FixedKeys([key for text in texts for key in read_keys(text, "FOLIOT_MASTER_KEY")])
    return Vault(source)
