"""What a person wrote becomes a complete schedule, or an error."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.kinds import Cron, Gap, Interval, Once, OverlapTime, Schedule
from foliot.domain.schedule.parse import (
    ParseOptions,
    anchored,
    check_schedule,
    looks_like_cron,
    read_schedule,
    settled,
)

SUNDAY = datetime(2026, 11, 15, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["0 9 * * 1-5", "@daily", "*/5 * * * *", "H H * * *", "0 0 0 * * *", "* * *"]
)
def test_cron_text_is_distinguished_from_words(text: str) -> None:
    assert looks_like_cron(text)


@pytest.mark.parametrize(
    "text",
    ["every 10 minutes", "9am every day", "18:00 on fridays", "2027-01-02T18:00:00Z", "", "15 minutes"],
)
def test_words_are_distinguished_from_cron_text(text: str) -> None:
    assert not looks_like_cron(text)


def test_policies_reach_the_cron_that_words_name() -> None:
    reading = ParseOptions("America/New_York", gap=Gap.SKIP, overlap_time=OverlapTime.BOTH)
    assert read_schedule("every day at 02:30", SUNDAY, reading) == Cron(
        "30 2 * * *", "America/New_York", gap=Gap.SKIP, overlap_time=OverlapTime.BOTH
    )


def test_an_interval_is_anchored_when_it_is_read() -> None:
    assert read_schedule("every 10 minutes", SUNDAY) == Interval(timedelta(minutes=10), anchor=SUNDAY)


def test_every_n_weeks_starts_with_the_first_week_that_has_a_time() -> None:
    # 15 November 2026 is a Sunday; the next Tuesday lies in the week after
    assert anchored(Cron("0 9 * * 2", every_n_weeks=3), SUNDAY) == Cron(
        "0 9 * * 2", every_n_weeks=3, anchor=date(2026, 11, 17)
    )


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 9 * * *", "Mars/Olympus"),
        Cron("0 9 * * *", every_n_weeks=0),
        Cron("0 9 * * *", spread=timedelta(days=2)),
        Interval(timedelta(milliseconds=999)),
        Interval(timedelta(days=200 * 366)),
        Interval(timedelta(hours=1), spread=timedelta(seconds=-1)),
        Once(SUNDAY, "Nowhere"),
    ],
)
def test_a_schedule_that_cannot_be_evaluated_is_refused(schedule: Schedule) -> None:
    with pytest.raises(ScheduleInvalid):
        check_schedule(schedule)


def test_a_schedule_that_would_not_fire_for_a_century_is_refused() -> None:
    with pytest.raises(ScheduleInvalid, match="never fires"):
        settled(Cron("0 0 29 2 *", every_n_weeks=520, anchor=date(2026, 11, 16)), SUNDAY)


@given(text=st.text(max_size=300), zone=st.sampled_from(["UTC", "Europe/Paris", "Asia/Kathmandu"]))
@example(text="0 0 * * *\0", zone="UTC")
@example(text="1 " * 10_000, zone="UTC")
@example(text="@" * 300, zone="UTC")
def test_whatever_is_written_is_read_or_refused(text: str, zone: str) -> None:
    with suppress(ScheduleInvalid):
        check_schedule(read_schedule(text, SUNDAY, ParseOptions(zone)))
