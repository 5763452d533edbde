"""A backup is taken, put into a new installation, and waits there until the operator has chosen."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

FOLIOT = Path(sys.executable).with_name("foliot")


def foliot(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    return subprocess.run(
        (FOLIOT, *args), capture_output=True, text=True, check=False, env=kept, cwd=cwd, timeout=90
    )


def test_a_backup_moves_to_a_new_directory_and_waits_for_the_operators_choice(tmp_path: Path) -> None:
    first, second = ("--data-dir", "first"), ("--data-dir", "second")
    assert foliot("migrate", *first, cwd=tmp_path).stdout.startswith("Applied ")
    assert foliot("migrate", *first, cwd=tmp_path).stdout == "Nothing to do: the database is up to date.\n"

    dumped = foliot("db", "dump", "backup.dump", *first, cwd=tmp_path)
    assert dumped.returncode == 0, dumped.stderr
    assert stat.S_IMODE((tmp_path / "backup.dump").stat().st_mode) == 0o600

    nothing_held = foliot("db", "release", "--missed", "skip", *first, cwd=tmp_path)
    assert (nothing_held.returncode, "Nothing is held" in nothing_held.stderr) == (4, True)

    restored = foliot("db", "restore", "backup.dump", *second, cwd=tmp_path)
    assert restored.returncode == 0, restored.stderr
    assert "No job runs until you choose" in restored.stdout

    again = foliot("db", "restore", "backup.dump", *second, cwd=tmp_path)
    assert (again.returncode, "--replace" in again.stderr) == (4, True)
    assert foliot("db", "restore", "--replace", "backup.dump", *second, cwd=tmp_path).returncode == 0

    released = foliot("db", "release", "--missed", "catch-up", *second, cwd=tmp_path)
    assert released.returncode == 0, released.stderr
    assert foliot("db", "release", "--missed", "skip", *second, cwd=tmp_path).returncode == 4


def test_a_file_that_is_no_dump_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    refused = foliot("db", "restore", "notes.txt", "--data-dir", "data", cwd=tmp_path)
    assert refused.returncode == 2
    assert "is not a dump" in refused.stderr
    assert "Traceback" not in refused.stderr
