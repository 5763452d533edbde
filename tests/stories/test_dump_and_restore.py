"""A backup is taken, put into a new installation, and waits there until the operator has chosen."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.fork_server import FOLIOT, environ_without_foliot, run_foliot
from tests.stories.server_process import wait_until_warnings_are


def foliot(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_foliot(*args, cwd=cwd, timeout=90)


@pytest.mark.slow
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

    use_while_serving(tmp_path)
    assert foliot("db", "release", "--missed", "skip", *second, cwd=tmp_path).returncode == 4


def use_while_serving(tmp_path: Path) -> None:
    """A restored node serves and says that it waits. It is dumped, gets a key and is released while it runs."""
    kept = environ_without_foliot()
    argv = (FOLIOT, "serve", "--data-dir", "second", "--port", "0", "--log-format", "json")
    with subprocess.Popen(argv, env=kept, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        started = next(line for line in serving.stderr if "server.started" in line)
        with urlopen(json.loads(started)["url"] + "/readyz", timeout=10) as answer:
            assert any("A backup was restored" in warning for warning in json.load(answer)["warnings"])
        for command in (("migrate",), ("db", "restore", "--replace", "backup.dump")):
            refused = foliot(*command, "--data-dir", "second", cwd=tmp_path)
            assert (refused.returncode, "is in use by another Foliot" in refused.stderr) == (4, True)
        done = foliot("db", "dump", "online.dump", "--data-dir", "second", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "online.dump").stat().st_size > 10_000
        made = foliot("keys", "create", "--admin", "--data-dir", "second", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        released = foliot("db", "release", "--missed", "catch-up", "--data-dir", "second", cwd=tmp_path)
        assert released.returncode == 0, released.stderr
        ready = json.loads(started)["url"] + "/readyz"
        wait_until_warnings_are(
            lambda found: not any("restored" in each for each in found), ready.removesuffix("/readyz")
        )
        serving.send_signal(signal.SIGTERM)
        serving.stderr.read()


def test_a_file_that_is_no_dump_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    refused = foliot("db", "restore", "notes.txt", "--data-dir", "data", cwd=tmp_path)
    assert refused.returncode == 2
    assert "is not a dump" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_mistyped_directory_is_reported_and_not_made(tmp_path: Path) -> None:
    for command in (
        ("db", "dump", "x.dump"),
        ("db", "release", "--missed", "skip"),
        ("keys", "create", "--admin"),
    ):
        refused = foliot(*command, "--data-dir", "typo", cwd=tmp_path)
        assert (refused.returncode, f"There is no database in {tmp_path / 'typo'}." in refused.stderr) == (
            3,
            True,
        )
    assert list(tmp_path.iterdir()) == []
