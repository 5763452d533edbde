"""Generated files are those that the generators make now."""

from __future__ import annotations

from tools import job_fields_generator
from tools.client_generator import TARGET, generate


def test_the_synchronous_client_is_fresh() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
    assert written
    assert written == generate(), "run ./dev format"


def test_the_keywords_and_flags_of_a_job_are_fresh() -> None:
    target = job_fields_generator.TARGET
    assert target.read_text(encoding="utf-8") == job_fields_generator.generate(), "run ./dev format"


def test_nothing_asynchronous_is_left_in_it() -> None:
    for name, text in generate().items():
        code = [line for line in text.splitlines() if not line.lstrip().startswith(("#", '"'))]
        assert not [line for line in code if "async " in line or "await " in line or "Async" in line], name
