"""What is said beside planned times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from foliot.domain.schedule import Timetable, preview
from foliot.domain.schedule.kinds import Cron, Gap, Interval, OverlapTime
from foliot.domain.schedule.notes import cautions, dst_notes, hash_note, notes_on
from foliot.domain.schedule.planned import SkipReason
from foliot.domain.schedule.timetable import times_between
from foliot.services.jobs.agenda import preview_times

NEW_YORK = "America/New_York"
JANUARY = datetime(2027, 1, 15, tzinfo=UTC)


def notes(schedule: Cron, n: int, after: datetime = JANUARY) -> tuple[str, ...]:
    timetable = Timetable(schedule)
    return dst_notes(timetable, after, preview(timetable, after, n))


@pytest.mark.parametrize("gap", Gap)
def test_a_note_is_not_lost_behind_many_times(gap: Gap) -> None:
    assert any("14 Mar 2027" in note for note in notes(Cron("*/5 2 * * *", NEW_YORK, gap=gap), 1000))


def test_every_skipped_time_between_those_shown_is_noted() -> None:
    schedule = Cron("30 2 * * *", NEW_YORK, gap=Gap.SKIP)
    timetable = Timetable(schedule)
    times = preview(timetable, JANUARY, 3000)
    skipped = [
        time
        for time in times_between(timetable, JANUARY, times[-1].planned_for)
        if time.skip is SkipReason.DST_GAP
    ]
    found = notes(schedule, 3000)
    assert len(found) == len(skipped) == 9
    assert list(found) == sorted(found, key=lambda note: int(note.split()[3]))


def test_a_gap_before_the_start_or_after_the_last_time_is_not_noted() -> None:
    schedule = Cron("30 2 * * *", NEW_YORK, gap=Gap.SKIP)
    assert notes(schedule, 5) == ()
    assert notes(schedule, 5, datetime(2027, 3, 14, 7, tzinfo=UTC)) == ()
    assert len(notes(schedule, 1, datetime(2027, 3, 14, 6, 59, tzinfo=UTC))) == 1


def test_a_swallowed_hour_of_an_open_schedule_needs_no_note() -> None:
    assert notes(Cron("30 * * * *", NEW_YORK, gap=Gap.SKIP), 3000) == ()


def test_both_passes_of_a_repeated_hour_are_noted() -> None:
    found = notes(
        Cron("30 1 * * *", NEW_YORK, overlap_time=OverlapTime.BOTH), 3, datetime(2026, 11, 1, tzinfo=UTC)
    )
    assert [note.rpartition(": ")[2] for note in found] == [
        "this is the first time, EDT.",
        "this is the second time, EST.",
    ]


def test_hashed_fields_are_noted_with_the_values_used_unless_a_job_chose_them() -> None:
    hashed = Timetable(Cron("H 3 * * H"))
    note = hash_note(hashed)
    assert note is not None
    first = preview(hashed, JANUARY, 1)[0].planned_for
    assert f"minute {first.minute} and day of week {first:%a}".upper() in note.upper()
    assert notes_on(hashed, JANUARY, ()) == (note,)
    assert hash_note(Timetable(Cron("H 3 * * H"), seed="job")) is None
    assert hash_note(Timetable(Cron("0 3 * * THU"))) is None
    assert hash_note(Timetable(Interval(first - JANUARY, JANUARY))) is None


def test_a_preview_without_a_job_says_that_hashed_values_are_an_example() -> None:
    reported = preview_times(Cron("H 4 * * *"), datetime(2027, 1, 1, tzinfo=UTC), 3)
    assert any(note.startswith("H stands for values") for note in reported.notes)


def test_a_stepped_day_field_beside_another_says_how_other_crons_read_it() -> None:
    [said] = cautions(Cron("0 0 */2 * MON"))
    assert "days that match both" in said
    assert "1-31/2" in said
    assert not [each for each in cautions(Cron("0 0 */2 * *")) if "crontab" in each]
