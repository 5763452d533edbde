"""Examples that need no server run as they stand. Those that need one are in tests/sdk and tests/stories."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "says"),
    [("words.py", "refused:"), ("planning.py", "misfire: latest")],
    ids=["words", "planning"],
)
def test_the_example_runs_by_itself(name: str, says: str) -> None:
    done = subprocess.run(
        (sys.executable, EXAMPLES / name), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
