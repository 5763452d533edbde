"""The example of the client, against `foliot serve` with no address or key given but the data directory's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.stories.serving import Serving

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_examples_of_the_client_make_jobs_and_see_their_runs(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    serving = Serving(data_dir)
    try:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        environ = kept | {"FOLIOT_API_URL": serving.wait_for_url(), "FOLIOT_DATA_DIR": str(data_dir)}

        def said_by(name: str) -> str:
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
            return done.stdout

        said = said_by("client.py")
        told, *runs = said.splitlines()
        assert told.startswith("Every 2 seconds; next at 2")
        ends = Counter(line.rpartition(": ")[2] for line in runs)
        # A planned time that came while the worker was still starting is on record as skipped: it overlapped.
        assert ends.pop("succeeded") == 3, said
        assert set(ends) <= {"skipped"}
        assert "greet Ada: succeeded, {'said': 'Hello, Ada!'}" in said_by("remote_worker.py")
    finally:
        serving.end()
