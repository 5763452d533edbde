"""The API as it describes itself, walked by schemathesis with all its checks. `./dev fuzz` does this for longer."""

from __future__ import annotations

import pytest

from tests.fuzz.run import fuzz, target

SHORT = ("--seed=1", "--max-examples=2", "--phases=examples,fuzzing,stateful", "--no-color")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_operation_breaks_or_answers_otherwise_than_it_says(capfd: pytest.CaptureFixture[str]) -> None:
    with target() as (url, key):
        code = fuzz(url, key, SHORT)
    assert code == 0, capfd.readouterr().out
