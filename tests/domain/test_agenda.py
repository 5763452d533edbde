"""The agenda: planned times of many jobs in one order, bounded, and honest about where it was cut."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.domain.agenda import Agenda, AgendaJob, Fate, agenda, density
from foliot.domain.freeze import Freeze, FreezePolicy
from foliot.domain.ids import FreezeId
from foliot.domain.schedule import (
    Absolute,
    Calendar,
    CalendarKind,
    Cron,
    Interval,
    IntervalMode,
    Once,
    Otherwise,
    Timetable,
    Window,
    planned_after,
)
from tests.domain.builders import at, every, job_id, make_job, make_uuid

HOUR, DAY, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
MIDNIGHT = at("00:00")


def ahead(
    schedule: Any, number: int = 1, *, cursor: Any = None, timetable: Any = None, **rest: Any
) -> AgendaJob:
    cursor = cursor or MIDNIGHT - timedelta(microseconds=1)
    table = timetable or Timetable(schedule, seed=str(job_id(number)))
    following = planned_after(table, cursor)
    since = cursor if following is None else following.due_at
    job = replace(make_job(schedule), id=job_id(number), timetable=table)
    return AgendaJob(job, since, cursor, since, **rest)


def reported(found: Agenda) -> list[str]:
    lines = []
    for _, line in ((entry.job_id, entry.line) for entry in found.entries):
        text = f"{line.first.due_at:%d %H:%M}"
        if line.last is not None:
            text += f"-{line.last.due_at:%H:%M} x{line.count}"
        if line.fate is not Fate.RUNS:
            text += f" {line.fate}"
        if line.reason is not None:
            text += f" {line.reason}"
        lines.append(text.removeprefix(f"{MIDNIGHT:%d} "))
    return lines


def a_day(*jobs: AgendaJob, **rest: Any) -> Agenda:
    return agenda(sorted(jobs, key=lambda each: each.since), MIDNIGHT, MIDNIGHT + DAY, **rest)


def test_times_of_several_jobs_come_in_one_order() -> None:
    found = a_day(ahead(Cron("0 9,18 * * *"), 1), ahead(Cron("30 8 * * *"), 2), ahead(Once(at("09:30")), 3))
    assert reported(found) == ["08:30", "09:00", "09:30", "18:00"]
    assert [entry.job_id for entry in found.entries] == [job_id(each) for each in (2, 1, 3, 1)]
    assert found.complete_until == MIDNIGHT + DAY


def test_an_hourly_job_is_listed_and_a_more_frequent_one_is_one_line() -> None:
    assert len(a_day(ahead(Cron("0 * * * *"))).entries) == 24
    assert reported(a_day(ahead(Cron("* * * * *")))) == ["00:00-23:59 x1440"]
    assert reported(a_day(ahead(every(1)))) == ["00:00-23:59 x86399"]
    assert reported(a_day(ahead(Cron("*/20 9-10,15 * * *")))) == ["09:00-10:40 x6", "15:00-15:40 x3"]


def test_what_is_beyond_counting_has_its_first_and_last() -> None:
    found = a_day(ahead(Cron("*/10 * * * * *", seconds=True)))
    assert reported(found) == ["00:00-23:59 xNone"]


def test_a_freeze_skips_or_holds_and_breaks_the_line() -> None:
    freeze = Freeze(FreezeId(make_uuid(9)), at("02:00"), at("04:00"), reason="year end")
    job = ahead(Cron("* * * * *"), freezes=(freeze,))
    assert reported(a_day(job)) == [
        "00:00-01:59 x120",
        "02:00-03:59 x120 skipped frozen",
        "04:00-23:59 x1200",
    ]
    held = ahead(Cron("0 3,5 * * *"), freezes=(replace(freeze, after=FreezePolicy.LATEST),))
    found = a_day(held)
    assert reported(found) == ["03:00 held", "05:00"]
    assert found.entries[0].line.freeze == replace(freeze, after=FreezePolicy.LATEST)


def test_windows_and_calendars_put_off_or_skip() -> None:
    window = Window(time(9), time(17))
    deferred = ahead(None, timetable=Timetable(Cron("0 */6 * * *"), window=window))
    assert reported(a_day(deferred)) == ["09:00 skipped window", "09:00", "12:00"]
    skipping = Timetable(Cron("0 */6 * * *"), window=replace(window, otherwise=Otherwise.SKIP))
    assert reported(a_day(ahead(None, timetable=skipping))) == [
        "00:00 skipped window", "06:00 skipped window", "12:00", "18:00 skipped window",
    ]  # fmt: skip
    holiday = Calendar("holiday", CalendarKind.BLACKOUT, (Absolute(MIDNIGHT, MIDNIGHT + DAY),))
    closed = Timetable(Cron("0 9 * * *"), calendars=(holiday,))
    assert reported(a_day(ahead(None, timetable=closed))) == ["09:00 skipped blackout"]


def test_what_was_put_off_into_the_stretch_belongs_to_it() -> None:
    table = Timetable(Cron("0 3 * * *"), window=Window(time(9), time(17)))
    found = agenda([ahead(None, timetable=table)], at("08:00"), at("10:00"))
    assert reported(found) == ["09:00"]
    assert found.entries[0].line.first.planned_for == at("03:00")


def test_a_time_that_the_clocks_jump_over_says_so() -> None:
    spring = at("2027-03-14 00:00")
    found = agenda([ahead(Cron("30 2 * * *", "America/New_York"), cursor=spring)], spring, spring + DAY)
    assert [entry.line.first.dst for entry in found.entries] == ["gap"]


def test_a_pause_that_ends_lets_later_times_through() -> None:
    assert reported(a_day(ahead(Cron("0 */6 * * *"), resumes_at=at("11:00")))) == ["12:00", "18:00"]


def test_the_next_is_skipped_and_the_last_of_max_runs_is_the_last() -> None:
    assert reported(a_day(ahead(Cron("0 */6 * * *"), skip_next=True)))[:2] == [
        "00:00 skipped operator",
        "06:00",
    ]
    assert reported(a_day(ahead(Cron("0 */6 * * *"), runs_left=2))) == ["00:00", "06:00"]
    later = agenda([ahead(Cron("0 */6 * * *"), runs_left=3)], at("05:00"), MIDNIGHT + DAY)
    assert reported(later) == ["06:00", "12:00"]
    assert reported(agenda([ahead(Cron("0 */6 * * *"), skip_next=True)], at("05:00"), at("07:00"))) == [
        "06:00"
    ]


def test_a_skip_that_was_asked_for_shows_in_a_span_that_begins_after_the_last_fire() -> None:
    """The span of an agenda begins now, and the cursor of a timer lies at its last fire."""
    long_ago = MIDNIGHT - timedelta(hours=1)
    one = ahead(Cron("0 */6 * * *"), cursor=long_ago, skip_next=True)
    assert reported(a_day(one))[:2] == ["00:00 skipped operator", "06:00"]
    several = ahead(Cron("0 */6 * * *"), cursor=long_ago, skip_next=True, skip_until=at("06:00"))
    assert reported(a_day(several))[:3] == ["00:00 skipped operator", "06:00 skipped operator", "12:00"]
    assert reported(agenda([several], at("05:00"), at("13:00"))) == ["06:00 skipped operator", "12:00"]


def test_a_fixed_delay_names_one_time_or_none() -> None:
    chained = Interval(HOUR, MIDNIGHT, IntervalMode.FIXED_DELAY)
    job = ahead(chained, cursor=at("04:00"))
    assert reported(a_day(job)) == ["05:00"]
    assert reported(a_day(replace(job, next_at=None))) == []


def test_the_list_ends_at_the_most_and_says_how_far_it_is_complete() -> None:
    found = a_day(ahead(Cron("0 * * * *"), 1), ahead(Cron("30 * * * *"), 2), most=5)
    assert reported(found) == ["00:00", "00:30", "01:00", "01:30", "02:00"]
    assert found.complete_until == at("02:30")


def test_missing_jobs_end_it_where_their_times_may_begin() -> None:
    found = a_day(ahead(Cron("0 * * * *")), more_since=at("02:30"))
    assert (reported(found), found.complete_until) == (["00:00", "01:00", "02:00"], at("02:30"))
    partial = agenda([ahead(Cron("0 * * * *"))], at("05:00"), at("07:00"), more_since=at("02:30"))
    assert (reported(partial), partial.complete_until) == (["05:00", "06:00"], at("05:00"))


@pytest.mark.parametrize("steps", [1, 10, 50, 100])
def test_work_is_bounded_and_what_is_reported_is_a_beginning_of_the_whole(steps: int) -> None:
    jobs = [ahead(Cron(f"{number % 60} */2 * * *"), number) for number in range(1, 30)]
    whole, part = a_day(*jobs), a_day(*jobs, steps=steps)
    complete = [entry for entry in part.entries if entry.line.first.due_at < part.complete_until]
    assert complete == [entry for entry in whole.entries if entry.line.first.due_at < part.complete_until]
    assert part.complete_until < whole.complete_until


def test_jobs_on_one_timetable_are_worked_out_once() -> None:
    table = Timetable(Cron("* * * * *"))
    jobs = [ahead(None, number, timetable=table) for number in range(1, 201)]
    found = a_day(*jobs, steps=2_000)
    assert len(found.entries) == 200
    assert found.complete_until == MIDNIGHT + DAY
    assert {entry.line.count for entry in found.entries} == {1440}
    assert {type(entry.job_id) for entry in found.entries} == {UUID}


def test_a_time_on_the_edge_belongs_to_the_stretch_that_it_begins() -> None:
    daily = ahead(Cron("0 6 * * *"))
    assert reported(agenda([daily], at("06:00"), at("07:00"))) == ["06:00"]
    assert reported(agenda([daily], at("05:00"), at("06:00"))) == []
    assert reported(agenda([ahead(Cron("0 6 * * *"), cursor=at("06:00"))], at("06:00"), at("07:00"))) == []
    assert reported(agenda([], at("06:00"), at("07:00"))) == []


def test_a_density_counts_the_times_in_each_part_of_a_span() -> None:
    jobs = [
        ahead(Cron("0 9,18 * * *"), 1),
        ahead(Cron("* * * * *"), 2),
        ahead(Cron("0 9 * * *"), 3, skip_next=True),
    ]
    found = density(jobs, MIDNIGHT, MIDNIGHT + DAY, 24, now=MIDNIGHT)
    assert found.jobs == 3
    assert [found.counts[hour] for hour in (0, 8, 9, 18, 23)] == [60, 60, 61, 61, 60]
    assert sum(found.counts) == 1_442


def test_a_density_counts_from_now_on() -> None:
    found = density([ahead(Cron("0 * * * *"))], MIDNIGHT, MIDNIGHT + DAY, 24, now=MIDNIGHT + 12 * HOUR)
    assert found.counts == (0,) * 12 + (1,) * 12


@pytest.mark.parametrize(("minutes", "parts"), [(7, 1_440), (7, 24), (7, 100), (59, 24), (1, 7)])
def test_a_density_puts_a_series_where_its_times_are(minutes: int, parts: int) -> None:
    found = density([ahead(every(minutes * 60))], MIDNIGHT, MIDNIGHT + DAY, parts, now=MIDNIGHT)
    times = [entry.line for entry in a_day(ahead(every(minutes * 60))).entries]
    first = times[0].first.due_at
    assert times[0].count is not None
    counts = [0] * parts
    for place in range(times[0].count):
        counts[int((first + minutes * MINUTE * place - MIDNIGHT) / (DAY / parts))] += 1
    assert list(found.counts) == counts


def test_a_density_says_of_how_many_jobs_it_is_when_its_work_is_bounded() -> None:
    jobs = [ahead(Cron(f"{minute} * * * *"), minute) for minute in range(1, 11)]
    found = density(jobs, MIDNIGHT, MIDNIGHT + DAY, 24, now=MIDNIGHT, steps=100)
    assert (found.jobs, sum(found.counts)) == (4, 96)
