"""What `foliot preview` prints, from hand-made planned times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from foliot.cli.preview import SchedulePreview, parse_instant, preview_json, preview_page
from foliot.cli.tables import render
from foliot.cli.times import relative
from foliot.domain.errors import Invalid
from foliot.domain.schedule.planned import PlannedTime, SkipReason

NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2027, 3, 13, 10, 0, tzinfo=UTC)


def shown_text(found: SchedulePreview, now: datetime) -> str:
    return render(preview_page(found, now), 100)


def planned(at: datetime, skip: SkipReason | None = None) -> PlannedTime:
    return PlannedTime(at, at.astimezone(NEW_YORK).replace(tzinfo=None), 0, at, skip)


TWO = SchedulePreview(
    words="Every day at 09:00, America/New_York",
    times=(
        planned(datetime(2027, 3, 13, 14, 0, tzinfo=UTC)),
        planned(datetime(2027, 3, 14, 13, 0, tzinfo=UTC)),
    ),
    zone=NEW_YORK,
    notes=("Clocks go forward on Sun 14 Mar 2027.",),
)


def test_the_sentence_comes_first_then_the_times_then_the_notes() -> None:
    assert shown_text(TWO, NOW) == (
        "Every day at 09:00, America/New_York\n"
        "\n"
        "LOCAL                      UTC                FROM NOW\n"
        "Sat 13 Mar 2027 09:00 EST  2027-03-13 14:00Z  in 4 h\n"
        "Sun 14 Mar 2027 09:00 EDT  2027-03-14 13:00Z  in 1 d 3 h\n"
        "\n"
        "Note: Clocks go forward on Sun 14 Mar 2027."
    )


def test_json_has_exactly_words_times_and_notes() -> None:
    assert json.loads(preview_json(TWO)) == {
        "words": "Every day at 09:00, America/New_York",
        "times": [
            {"local": "2027-03-13T09:00:00-05:00", "utc": "2027-03-13T14:00:00Z"},
            {"local": "2027-03-14T09:00:00-04:00", "utc": "2027-03-14T13:00:00Z"},
        ],
        "notes": ["Clocks go forward on Sun 14 Mar 2027."],
    }


def test_seconds_and_skips_are_shown_where_there_are_any() -> None:
    at = datetime(2027, 3, 13, 14, 0, 30, tzinfo=UTC)
    shown = shown_text(SchedulePreview("words", (planned(at, SkipReason.DST_GAP),), NEW_YORK, ()), NOW)
    assert "09:00:30 EST" in shown
    assert "in 4 h, skipped (dst_gap)" in shown


def test_no_more_times_is_said_in_words() -> None:
    assert shown_text(SchedulePreview("Once", (), NEW_YORK, ()), NOW) == "Once\n\nIt has no later time."


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (timedelta(hours=4, minutes=12), "in 4 h 12 m"),
        (timedelta(days=1, hours=4, minutes=12), "in 1 d 4 h"),
        (timedelta(days=3, minutes=5), "in 3 d"),
        (timedelta(minutes=59, seconds=59.7), "in 1 h"),
        (timedelta(seconds=12), "in 12 s"),
        (timedelta(milliseconds=300), "now"),
        (timedelta(minutes=-5, seconds=-1), "5 m 1 s ago"),
        (timedelta(days=-400), "400 d ago"),
    ],
)
def test_a_distance_is_said_in_its_two_largest_units(distance: timedelta, said: str) -> None:
    assert relative(distance) == said


def test_an_instant_needs_a_zone() -> None:
    assert parse_instant("2027-03-13T00:00:00-05:00") == datetime(2027, 3, 13, 5, tzinfo=UTC)
    with pytest.raises(Invalid, match="no time zone"):
        parse_instant("2027-03-13T00:00:00")
    with pytest.raises(Invalid, match="not an instant"):
        parse_instant("tomorrow\0")
