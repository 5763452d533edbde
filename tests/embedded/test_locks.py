"""One serve per data directory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from foliot.domain.errors import Conflict
from foliot.embedded.locks import serve_lock

HOLD = """
import sys
from pathlib import Path
from foliot.embedded.locks import serve_lock
with serve_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_serve_on_one_directory_is_refused_by_name(
    folder: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    holder = spawn(HOLD, folder / "data")
    assert holder.stdout is not None
    holder.stdout.readline()
    with (
        pytest.raises(Conflict, match=rf"{folder / 'data'} is in use by another Foliot \(pid {holder.pid}\)"),
        serve_lock(folder / "data"),
    ):
        pass
    holder.kill()
    holder.wait()
    with serve_lock(folder / "data"):
        assert (folder / "data" / "serve.lock").read_text().strip().isdigit()


def test_a_lock_is_free_again_after_use_and_directories_do_not_disturb_each_other(folder: Path) -> None:
    with serve_lock(folder / "one"), serve_lock(folder / "two"):
        pass
    with serve_lock(folder / "one"):
        pass
