"""Instants: RFC 3339 with an offset, in UTC from there on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.wire.instants import read_id, read_instant, write_instant


@pytest.mark.parametrize(
    "text",
    ["2027-01-02T18:00:00-03:00", "2027-01-02T21:00:00Z", "2027-01-02t21:00:00z", "2027-01-02 21:00+00:00"],
)
def test_one_instant_has_many_spellings(text: str) -> None:
    assert read_instant(text) == datetime(2027, 1, 2, 21, tzinfo=UTC)
    assert write_instant(read_instant(text)) == "2027-01-02T21:00:00Z"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2027-01-02T18:00:00", "no offset"),
        ("2027-01-02", "not an instant"),
        ("tomorrow", "not an instant"),
        ("1798916400", "not an instant"),
        ("2027-02-30T00:00:00Z", "no such date"),
        ("2027-01-02T24:30:00Z", "no such date"),
        ("2027-01-02T00:00:60Z", "no such date"),
        ("2027-01-02T00:00:00+99:00", "no such date"),
        ("0001-01-01T00:00:00+14:00", "no such date"),
        ("1969-12-31T23:59:59Z", "between the years"),
        ("9000-01-01T00:00:00Z", "between the years"),
        ("\u0662027-01-02T00:00:00Z", "not an instant"),
    ],
)
def test_what_names_no_instant_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_instant(text)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(8999, 12, 31), timezones=st.just(UTC)))
def test_what_is_written_reads_back(instant: datetime) -> None:
    assert read_instant(write_instant(instant)) == instant


def test_an_id_has_one_form() -> None:
    text = "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"
    found = read_id(text)
    assert str(found) == text
    assert read_id(text.upper()) == found
    for other in (
        text.replace("-", ""),
        f"{{{text}}}",
        f"urn:uuid:{text}",
        text + "\n",
        "",
        "\u0660" + text[1:],
    ):
        assert read_id(other) is None
