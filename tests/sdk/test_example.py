"""The examples of the client, against `foliot serve` with no address or key given but the data directory's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.stories.serving import Serving

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, tmp_path: Path) -> list[str]:
    """What it says."""
    data_dir = tmp_path / "data"
    serving = Serving(data_dir)
    try:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        environ = kept | {"FOLIOT_API_URL": serving.wait_for_url(), "FOLIOT_DATA_DIR": str(data_dir)}
        done = subprocess.run(
            (sys.executable, EXAMPLES / name),
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    finally:
        serving.end()


def test_the_example_of_the_client_makes_a_job_and_sees_its_three_runs(tmp_path: Path) -> None:
    told, *runs = run("client.py", tmp_path)
    assert told.startswith("Every 2 seconds; next at 2")
    ends = Counter(line.rpartition(": ")[2] for line in runs)
    # A planned time that came while the worker was still starting is on record as skipped: it overlapped.
    assert ends.pop("succeeded") == 3, runs
    assert set(ends) <= {"skipped"}


def test_the_example_of_rooms_asks_twice_and_is_answered(tmp_path: Path) -> None:
    said = run("rooms.py", tmp_path)
    assert sum("What is on today?" in line for line in said) == 2
    assert sum(line.endswith(": Three tickets and the release.") for line in said) == 2
    assert [line.partition(" left message ")[1] for line in said[-2:]] == [" left message "] * 2
