"""What one start of the embedded server must know of the ones before: `<data dir>/postgres.json`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.durable import sync_folder
from foliot.embedded.failures import cannot_write
from foliot.embedded.privilege import name_of


@dataclass(frozen=True, slots=True)
class Record:
    elsewhere: Path | None  # the server's folder when it is not in the data directory
    password: str  # of the owner
    ready: bool  # a cluster has been made

    @staticmethod
    def path(data_dir: Path) -> Path:
        return data_dir / "postgres.json"

    @classmethod
    def load(cls, data_dir: Path) -> Record | None:
        path = cls.path(data_dir)
        try:
            fields = json.loads(_read(path))
            elsewhere = fields["elsewhere"]
            return cls(Path(elsewhere) if elsewhere else None, str(fields["password"]), bool(fields["ready"]))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot_write(path, error) from error
        except (ValueError, KeyError, TypeError):
            raise DatabaseUnavailable(
                f"{path} is damaged; it holds where the database is and its password.",
                hint="Restore it from a backup.",
            ) from None

    def home(self, data_dir: Path) -> Path:
        return self.elsewhere or data_dir / "postgres"

    def save(self, data_dir: Path) -> None:
        """Complete or not at all, also through a power cut: the password is nowhere else."""
        fields = {
            "elsewhere": str(self.elsewhere) if self.elsewhere else None,
            "password": self.password,
            "ready": self.ready,
        }
        path = self.path(data_dir)
        draft = path.with_suffix(".new")
        try:
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w"
            ) as file:
                json.dump(fields, file)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(path)
            sync_folder(data_dir)
        except OSError as error:
            raise cannot_write(data_dir, error) from error


def _read(path: Path) -> str:
    """Asked of the open file, so that nobody can put another in its place between the question and the reading."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if os.geteuid() == 0 and (found.st_uid != 0 or found.st_mode & 0o022):
            raise DatabaseUnavailable(
                f"{path} was written by user {name_of(found.st_uid)} or may be changed by others, and this is root.",
                hint=f"If you trust what it says: chown root {path}; chmod 600 {path}",
            )
        return file.read()
