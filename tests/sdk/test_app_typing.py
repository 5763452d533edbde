"""What a type checker sees of decorated functions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = Path(__file__).with_name("typing_sample.txt")


def test_a_decorated_function_keeps_its_types_and_options_have_theirs(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(SAMPLE.read_text())
    command = (sys.executable, "-m", "mypy", sample)  # strict, and with the cache of ./dev lint
    reported = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    ).stdout
    revealed = [
        each.replace("builtins.", "") for each in re.findall(r'Revealed type is "(.*)"', reported)
    ]  # versions of mypy differ in how much they write out
    job = "foliot.sdk.app.job.Job"
    assert revealed[:4] == [
        f"{job}[[ctx: foliot.sdk.context.Context, amount: int, currency: str =], dict[str, int]]",
        "dict[str, int]",
        f"{job}[[day: str], typing.Coroutine[Any, Any, bytes]]",
        "bytes",
    ], reported
    assert "Literal['succeeded']" in revealed[4]
    wrong = {
        number: line for number, line in enumerate(SAMPLE.read_text().splitlines(), 1) if "# wrong" in line
    }
    assert {int(each) for each in re.findall(r"sample\.py:(\d+): error", reported)} == set(wrong), reported
