"""The first job of a new user, with curl alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "first_job.sh"


@pytest.mark.requirement("S3-1")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the example needs curl")
def test_the_first_job_of_the_examples_runs_three_times_and_completes(
    start_server: Any, data_dir: Path
) -> None:
    url = start_server().wait_for_url()
    environ = os.environ | {"FOLIOT_API_URL": url, "FOLIOT_DATA_DIR": str(data_dir)}
    done = subprocess.run((EXAMPLE,), capture_output=True, text=True, check=False, timeout=90, env=environ)
    assert done.returncode == 0, done.stderr
    made, *runs = done.stdout.splitlines()
    assert re.fullmatch(r"made job [0-9a-f-]{36}", made)
    ends = Counter(run.split()[2] for run in runs)
    # A planned time that came while the worker was still starting is on record as skipped: it overlapped.
    assert ends.pop("succeeded") == 3
    assert set(ends) <= {"skipped"}


@pytest.mark.slow
def test_a_body_that_never_ends_gets_its_answer_and_the_server_goes_on(
    start_server: Any, data_dir: Path
) -> None:
    url = start_server().wait_for_url()
    headers = {
        "Authorization": f"Bearer {(data_dir / 'admin.key').read_text().strip()}",
        "Content-Type": "application/json",
    }
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{url}/api/v1/jobs", data=b" " * 1_200_000, headers=headers), timeout=30)
    assert refused.value.code == 413
    assert json.load(refused.value)["code"] == "too_large"
    with urlopen(Request(f"{url}/api/v1/jobs", headers=headers), timeout=30) as answer:
        assert json.load(answer) == {"items": [], "next_cursor": None}
