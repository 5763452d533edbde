"""What the server says, in one file of bounded size with one older generation beside it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

LARGEST = 10 * 2**20


@dataclass(frozen=True, slots=True)
class LogFile:
    path: Path

    def open(self) -> int:
        """For appending only: the server keeps writing at the end also after `trim` has cut the file."""
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def since(self, offset: int) -> str:
        """At most the last 64 KiB of what came after `offset`."""
        with self.path.open("rb") as file:
            file.seek(max(offset, self.size() - 2**16))
            return file.read().decode(errors="replace")

    def trim(self, largest: int = LARGEST) -> None:
        """Copy and cut, because the server holds the file open and would follow a renamed one."""
        if self.size() > largest:
            older = self.path.with_suffix(".log.1")
            try:
                older.touch(mode=0o600)
                shutil.copyfile(self.path, older)
            except OSError:  # on a full disk the log is what can be spared
                older.unlink(missing_ok=True)
            os.truncate(self.path, 0)
