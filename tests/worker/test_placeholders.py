"""Placeholders: names of a closed list, with or without blanks around them, found in no time in any text."""

from __future__ import annotations

import pytest

from foliot.handlers.placeholders import (
    MOST_FILLED,
    FilledTextTooLarge,
    check_growth,
    check_names,
    fill,
    fill_text,
)

FACTS = {"run.id": "r1", "run.attempt": 2}


@pytest.mark.parametrize("place", ["{{run.attempt}}", "{{ run.attempt }}", "{{\trun.attempt\n}}"])
def test_blanks_around_a_name_are_none_of_it(place: str) -> None:
    assert fill(place, FACTS) == 2
    assert fill_text(f"try {place}.", FACTS) == "try 2."
    assert check_names(place) == place


@pytest.mark.parametrize(
    "text", ["{{" + " " * 250_000, "{{ " * 80_000, "{{ a" + " a" * 100_000 + "}"], ids=range(3)
)
def test_no_text_takes_minutes_to_be_looked_through(text: str) -> None:
    """A user who may write a job could hold up the server with it."""
    assert check_names(text) == text
    assert fill_text(text, FACTS) == text


def test_a_small_text_does_not_become_more_than_a_machine_can_hold() -> None:
    facts = {**FACTS, "run.input": {"text": "x" * 1_000_000}}
    check_growth({"body": ["{{run.input}}", "{{ run.id }}"] * 2}, facts)
    for value in ("{{run.input}}" * 5_000, {"body": ["{{ run.input }}"] * (MOST_FILLED // 1_000_000 + 1)}):
        with pytest.raises(FilledTextTooLarge, match="smaller input"):
            check_growth(value, facts)
