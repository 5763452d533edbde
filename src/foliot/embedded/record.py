"""What one start of the embedded server must know of the ones before: `<data dir>/postgres.json`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.durable import sync_folder
from foliot.embedded.failures import cannot_write


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
            fields = json.loads(path.read_text())
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
