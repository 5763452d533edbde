"""Durations: read from what people write, written so that they read back."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.wire.durations import LONGEST, read_duration, write_duration


@pytest.mark.requirement("C-19", "S4-5")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600), ("1h30m", 5400), ("1h 30m", 5400), ("90s", 90), ("2d", 172_800), ("1w", 604_800), ("250ms", 0.25),
        ("1.5h", 5400), ("0s", 0), (" 5m ", 300), ("1m500ms", 60.5), ("PT10M", 600), ("P1D", 86_400), ("P2W", 1_209_600),
        ("P1DT2H3M4.5S", 93_784.5), ("PT0,5S", 0.5), ("PT36H", 129_600),
    ],
)  # fmt: skip
def test_these_are_durations(text: str, seconds: float) -> None:
    assert read_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "10", "m", "-5m", "+5m", "10 minutes", "5m1h", "1h1h", "P", "PT", "P1DT", "T5M", "PT5", "1e3s", "ten", "5M",
        "\u0661m", "1" * 70 + "s", "9999999999s", "999999999w", "NaN", "1h30", "10m\n5s x", "PT-5M", "\x00",
    ],
)  # fmt: skip
def test_these_are_not(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|no unit"):
        read_duration(text)


@pytest.mark.parametrize("text", ["P1Y", "P1M", "P1Y2M3D", "1mo", "2y"])
def test_months_and_years_are_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="no fixed length"):
        read_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_what_is_written_reads_back(value: timedelta) -> None:
    assert read_duration(write_duration(value)) == value


@given(st.text(max_size=80))
def test_no_text_makes_reading_fail_in_another_way(text: str) -> None:
    with suppress(ValueError):
        assert timedelta(0) <= read_duration(text) <= LONGEST
