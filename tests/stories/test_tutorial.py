"""The tutorial is followed to the letter, on a server of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import environ_without_foliot, write_program

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
PRINTED = "http://127.0.0.1:8700"


def blocks() -> list[tuple[str, str]]:
    found = re.findall(r"^```(sh|python)\n(.*?)^```$", TUTORIAL.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [(language, block) for language, block in found]


@pytest.mark.timeout(300)  # twenty programs are started, on a machine that may be busy
@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl")
def test_every_command_of_the_tutorial_works_in_its_order(start_server: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / ".foliot").symlink_to(tmp_path / "data")  # the folder of `./dev serve` in a clone
    url = start_server().wait_for_url()
    kept = environ_without_foliot()
    write_program(tmp_path)
    path = os.pathsep.join((str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]))
    # The tutorial's server has the port that clients look for; this one has any, given to them.
    environ = kept | {"FOLIOT_API_URL": url, "PATH": path}
    said = []
    for language, block in blocks():
        program = ("sh", "-eu") if language == "sh" else (sys.executable, "-")
        done = subprocess.run(
            program,
            input=block.replace(PRINTED, url),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=tmp_path,
            env=environ,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        said.append(done.stdout)
    assert any("succeeded" in each for each in said)
    assert said[-1].splitlines()[-1].endswith("succeeded")
